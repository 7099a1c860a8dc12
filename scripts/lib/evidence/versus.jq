# versus.jsonl as its table. $grid: the peers' shapes with a table of times.
# fa3_scaled: FlashAttention 3's time in that table x the library's time here / cuDNN's time in the table.
def name(seq): "\(.batch),\(.heads),\(seq),\(.dim)\(if .causal then " causal" else "" end)";
($grid[0].shapes | map({(name(.seq)): .table}) | add) as $table |
[inputs | fromjson? | (.problem | name(.seq_q)) as $problem | $table[$problem] as $there | {problem: $problem,
    kernel, variant, arch: .ptxas.arch, config, status, reason, p50_us: .vs.p50_us,
    vs: .vs.kernel, vs_compiler: .vs.compiler, vs_p50_us: .vs.other_p50_us, ratio: .vs.ratio, ci95: .vs.ratio_ci95,
    fa3_scaled: (if .vs.other_p50_us and $there.fa3 and $there.cudnn then $there.fa3 * .vs.other_p50_us / $there.cudnn
        else null end),
    sm_clock_mhz: .timing.sm_clock_mhz.p50, git: .provenance.git, code_sha256: .provenance.code_sha256,
    source_sha256: .provenance.source_sha256}]
