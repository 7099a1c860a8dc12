# A record of --compile-only --bound --runs: what a point needs of it, by the options of its line of $options.
{key: ($options | split("\n"))[.provenance.line - 1],
    value: {bound, code: .provenance.code_sha256, blocks_per_sm: .occupancy.blocks_per_sm,
        git: .provenance.git}}
