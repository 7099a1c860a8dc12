# A record of --compile-only as a line of compile_all.jsonl. $points: the options of its run, by its line.
($points | split("\n"))[.provenance.line - 1] as $point |
($point | capture("--kernel (?<kernel>[^ ]+) --arch (?<arch>[^ ]+) --dim (?<dim>[0-9]+)")) as $at |
{point: $point, kernel: $at.kernel, arch: (.ptxas.arch // $at.arch), status, reason, config, dim: ($at.dim | tonumber),
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes,
    spill_bytes: ((.ptxas.spill_store_bytes // 0) + (.ptxas.spill_load_bytes // 0)),
    warnings: (.ptxas.warnings // []), blocks_per_sm: .occupancy.blocks_per_sm, code_sha256: .provenance.code_sha256}
