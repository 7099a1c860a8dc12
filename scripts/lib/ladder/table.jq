# The records of the steps as ladder.json. tile: the configuration is the kernel's own, not a variant's.
include "typed";
# The target that the default of a device is: of a record without figures of a compiler, which is a library's.
def target: .device.arch | values | if test("^sm_(9|1[0-9])[0-9]$") then . + "a" else . end;
map({problem: (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)\(typed)"), kernel, variant,
    arch: (.ptxas.arch // target), config, tile: (.variant == .kernel and .config != null),
    p50_us: .timing.p50_us, p90_us: .timing.p90_us, tflops: .throughput.tflops,
    vs: .vs.kernel, ratio: .vs.ratio, ci95: .vs.ratio_ci95, method: .timing.method,
    sm_clock_mhz: .timing.sm_clock_mhz.p50, vs_config: .vs.config, vs_code_sha256: .vs.code_sha256,
    code_sha256: .provenance.code_sha256, git: .provenance.git})
