# Records with and without --l2-persist kv as rows: kernel, problem, state of the L2, both times, how many times as fast
# with it.
def l2: .timing.l2 // (.provenance.command | capture("--l2 (?<l2>[a-z]+)").l2);
def persist: .timing.l2_persist // (.provenance.command | capture("--l2-persist (?<p>[a-z]+)").p);
[inputs | fromjson? | select(.problem)] | group_by([(.problem | [.seq_q, .seq_kv]), .kernel, l2]) | map(
    . as $both | def of($p): $both | map(select(persist == $p))[0]; of("none") as $none | of("kv") as $kv |
    .[0] | {kernel, variant, arch: .ptxas.arch, config,
    problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal, dtype}), l2: l2,
    none_us: $none.timing.p50_us, none_ci95: $none.timing.p50_ci95_us, kv_us: $kv.timing.p50_us,
    kv_ci95: $kv.timing.p50_ci95_us,
    ratio: (if $none.timing and $kv.timing then $none.timing.p50_us / $kv.timing.p50_us else null end),
    reason: ($none.reason // $kv.reason), gpu: .device.name, driver: .provenance.driver, git: .provenance.git,
    code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256})
