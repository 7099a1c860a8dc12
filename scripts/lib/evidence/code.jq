# A record of --compile-only --runs: the options of its line of $options, and the hash of the machine code.
{key: ($options | split("\n"))[.provenance.line - 1],
    value: (select(.status == "pass").provenance.code_sha256 // "none")}
