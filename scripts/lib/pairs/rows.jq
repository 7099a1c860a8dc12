# Records of pairs as rows; of two records of one command the later one. A torn line is left out.
def pace: .provenance.command // "" | if test("--rest-ms [1-9]") then "rested" else "sustained" end;
def peer: .vs.kernel // (.provenance.command // "" | capture("--vs (?<name>[^ ]+)").name |
    sub("^library:(.*/)?"; "") | sub("[.]so$"; ""));
reduce (inputs | fromjson? | select(.problem)) as $record ({}; .[$record.provenance.command // ""] = $record) | map({
    kernel, variant, arch: .ptxas.arch, config, pace: pace,
    problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal, dtype}),
    vs: peer, vs_version: .vs.compiler, status, reason,
    p50_us: .vs.p50_us, vs_p50_us: .vs.other_p50_us, ratio: .vs.ratio, ci95: .vs.ratio_ci95, blocks: .vs.blocks,
    solo_us: .timing.p50_us, tflops: .throughput.tflops, sm_clock_mhz: .timing.sm_clock_mhz.p50,
    percent_of_peak: .timing.percent_of_peak_at_clock, gpu: .device.name, driver: .provenance.driver,
    git: .provenance.git, code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256})
