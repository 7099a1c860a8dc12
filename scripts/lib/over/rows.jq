# The records of old --vs new as rows (with jq -s): how many times as fast the new one is.
def one_over: numbers | 1 / .;
map({kernel: .vs.kernel, variant: .kernel, arch: .ptxas.arch, problem, config: .vs.config, status, reason,
    code_sha256: .vs.code_sha256, old_code_sha256: .provenance.code_sha256,
    new_over_old: ((.vs.ratio | one_over) // null),
    ci95: ([.vs.ratio_ci95[1, 0]? | one_over] | if length == 2 then . else null end),
    aa_noise: .vs.aa_noise, p50_us: .vs.p50_us, git: .provenance.git, time: .provenance.time,
    gpu: .device.name, driver: .provenance.driver})
