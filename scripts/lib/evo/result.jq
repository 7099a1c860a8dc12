# A record as a line of leaderboard.jsonl; nothing for one from another kind of GPU, or for what is no record.
include "is_record";
select(is_record) | select($gpu == "CPU emulator" or .device == null or .device.name == $gpu) |
{key: $key, group: $group, gpu: $gpu, kernel: $kernel, variant, knobs: $knobs, arch: .ptxas.arch, config,
    class: (.config.acc // "fp32"), problem, status, reason,
    code: ({"pass": 0, "wrong": 1, "infeasible": 3, "not_run": 4, "timeout": 5}[.status] // 6),
    p50_us: (if .timing.impossible then null else .timing.p50_us end), p90_us: .timing.p90_us,
    loosened: (.check.loosened // false), registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes,
    spill_bytes: .ptxas.spill_store_bytes, code_sha256: .provenance.code_sha256,
    source_sha256: .provenance.source_sha256, git: .provenance.git, time: .provenance.time,
    stage_s: .provenance.stage_s} + $compiled
