# The records of old --vs new as rows (with jq -s): how many times as fast the new one is.
def over_one: if . then 1 / . else null end;
map({kernel: .vs.kernel, arch: .ptxas.arch, problem, config: .vs.config, status, reason,
    code_sha256: .vs.code_sha256, old_code_sha256: .provenance.code_sha256, new_over_old: (.vs.ratio | over_one),
    ci95: (if .vs.ratio_ci95 then .vs.ratio_ci95 | [1 / .[1], 1 / .[0]] else null end),
    aa_noise: .vs.aa_noise, p50_us: .vs.p50_us, git: .provenance.git, time: .provenance.time,
    gpu: .device.name, driver: .provenance.driver})
