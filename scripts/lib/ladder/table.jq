# The records of the steps as ladder.json. tile: the configuration is the kernel's own, not a variant's.
map({problem: (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)"), kernel, config,
    tile: (.variant == .kernel and .config != null), p50_us: .timing.p50_us, p90_us: .timing.p90_us,
    tflops: .throughput.tflops, vs: .vs.kernel, ratio: .vs.ratio, ci95: .vs.ratio_ci95, method: .timing.method,
    sm_clock_mhz: .timing.sm_clock_mhz.p50, git: .provenance.git})
