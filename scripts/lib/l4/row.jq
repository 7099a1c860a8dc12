# A record of --compile-only --bound --runs as a row of the page: what the tile needs and what bounds it. $lines: the
# options of the runs; a line without a tile took that of the rules.
{kernel, variant, rule: (($lines | split("\n"))[.provenance.line - 1] | test("--m ") | not),
    problem: (.problem | {batch, heads, seq: .seq_q, dim, causal}), config, status, reason,
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, blocks_per_sm: .occupancy.blocks_per_sm,
    bound, code_sha256: .provenance.code_sha256, git: .provenance.git}
