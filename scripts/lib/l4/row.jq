# A record of --compile-only --bound as a row of the page: what the tile needs and what bounds it.
{kernel: .variant, config, status, reason,
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, blocks_per_sm: .occupancy.blocks_per_sm,
    bound, code_sha256: .provenance.code_sha256, git: .provenance.git}
