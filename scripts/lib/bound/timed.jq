# A record of --runs as a point of bound_time.sh, with what is known of its bound. $points: the options, by line.
{kernel, variant, status, reason, config, problem, arch: .ptxas.arch,
    point: ($points | split("\n"))[.provenance.line - 1],
    p50_us: .timing.p50_us, sm_clock_mhz: .timing.sm_clock_mhz.p50, percent_of_bound: .bound.percent_of_bound,
    bound_unknown: .bound.unknown, binds: .bound.binds, code_sha256: .provenance.code_sha256, git: .provenance.git}
