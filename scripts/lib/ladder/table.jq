# The records of the steps as ladder.json. tile: the configuration is the kernel's own, not a variant's.
include "evidence/row";
include "typed";
map({problem: (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)\(typed)"), kernel, variant,
    arch: (.ptxas.arch // (.device.arch | target)), config, tile: (.variant == .kernel and .config != null),
    p50_us: .timing.p50_us, p90_us: .timing.p90_us, tflops: .throughput.tflops,
    vs: .vs.kernel, ratio: .vs.ratio, ci95: .vs.ratio_ci95, method: .timing.method,
    sm_clock_mhz: .timing.sm_clock_mhz.p50, vs_config: .vs.config, vs_code_sha256: .vs.code_sha256,
    code_sha256: .provenance.code_sha256, git: .provenance.git})
