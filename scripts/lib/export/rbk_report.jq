# Rows (with jq -s) as rbk_report.json and rbk_report.md, a line each: NAME, a tab, the contents. Per problem: PyTorch's
# fused attention (SDPA), the ladder of kernels, the best tile, and whether each criterion of success is met.
# $lines: everything read, for the rows of peers.json, which time PyTorch beside a kernel.
def accepted: 1.03; # what a comparison must exceed with its whole interval
def tile: if . then del(.acc, .maxreg) | to_entries | map("\(.key)=\(.value)") | join(",") else null end;
def inverse: if . then 1 / . else null end;
def interval: if type == "array" and all(.[]; . != null) then . else null end; # of few pairs there is none

# Of each kernel the fastest that is right, else what became of it.
def ladder: group_by(.kernel) | map((map(select(.status == "pass" and .p50_us)) | min_by(.p50_us)) // .[0]) |
    sort_by([.p50_us == null, -(.p50_us // 0)]) |
    map({kernel, library: (.knobs == null), tile: (.knobs | tile), status, reason, p50_us, p90_us, tflops, over: .vs,
        ratio, ratio_ci95: (.ratio_ci95 | interval)});

# PyTorch's attention and FlashAttention 3 on this problem; ratio: how much faster the kernel beside it is. Paired where
# both were.
def peers($p): [$lines[] | select(.peers | type == "object") |
    select($p.heads == $p.kv_heads and $p.seq_q == $p.seq_kv and
        [.batch, .heads, .seq, .dim, .causal, .dtype // "fp16"] ==
            [$p.batch, $p.heads, $p.seq_q, $p.dim, $p.causal, $p.dtype // "fp16"])] |
    (min_by(.us) // {peers: {}}) as $row | $row.peers | to_entries |
    map(select(.key | endswith("_scaled") | not) | $row.paired[.key] as $pair | {name: .key, source: $row.torch,
        p50_us: .value, p90_us: null, tflops: ($p.flop / .value / 1e6), slower_than: $row.kernel,
        ratio: ($pair.ratio // (.value / $row.us)), ratio_ci95: ($pair.ci95 | interval)});
def fused($best): map(select(.kernel == "cudnn" and .p50_us)) | map({name: "cudnn record", source: "fa_bench", p50_us,
    p90_us, tflops, slower_than: $best.kernel} + if .over == $best.kernel then {ratio: (.ratio | inverse),
        ratio_ci95: (.ratio_ci95 | if . then reverse | map(inverse) else null end)}
    else {ratio: (if $best then .p50_us / $best.p50_us else null end), ratio_ci95: null} end);

# met: null where nothing was compared.
def criterion($name; $wanted; $values; met): {name: $name, wanted: $wanted, compared: ($values | length),
    met: (if $values == [] then null else all($values[]; met) end)};
def low: .ratio_ci95[0] // .ratio;
def criteria($sdpa): map(select(.library | not)) as $ours | [
    criterion("right"; "every kernel agrees with FP64 attention"; $ours; .status == "pass"),
    criterion("ladder"; "every kernel is over \(accepted) times as fast as the one it is compared with";
        $ours | map(select(.ratio)); low > accepted),
    criterion("sdpa"; "the best tile is over \(accepted) times as fast as every fused attention";
        $sdpa; low > accepted)];

def problem: .[0] as $first | ladder as $ladder |
    ($ladder | map(select((.library | not) and .p50_us)) | last) as $best |
    (peers($first.problem) + ($ladder | fused($best))) as $sdpa |
    {problem: $first.problem_text, gpu: $first.gpu, sdpa: $sdpa, ladder: $ladder, best: $best,
     criteria: ($ladder | criteria($sdpa))};

def short: if . == null then "-" else (. * 1000 | round / 1000) end;
def cell: . // "-" | tostring | gsub("[|\n]"; " ");
def table($names; f): "| \($names | join(" | ")) |", "|\($names | map("---") | join("|"))|",
    (.[] | "| \([f] | map(cell) | join(" | ")) |");
def ratio: "\(.ratio | short)" + if .ratio_ci95 then " (\(.ratio_ci95 | map(short) | join(" to ")))" else "" end;
def verdict: if . == null then "not compared" elif . then "met" else "not met" end;
def markdown: "## B,H,KV,Sq,Skv,D \(.problem), \(.gpu)", "",
    (.best | if . then "Best tile: `\(.kernel)` \(.tile), p50 \(.p50_us | short) us, p90 \(.p90_us | short) us, " +
        "\(.tflops | short) TFLOP/s." else "No kernel has a time." end), "",
    (.criteria | table(["criterion", "wanted", "compared", "verdict"]; .name, .wanted, .compared, (.met | verdict))),
    "",
    (.ladder | table(["kernel", "tile", "status", "p50 us", "p90 us", "TFLOP/s", "over", "ratio"];
        .kernel, .tile, .status, (.p50_us | short), (.p90_us | short), (.tflops | short), .over, ratio)), "",
    (.sdpa | table(["fused attention", "p50 us", "p90 us", "TFLOP/s", "slower than", "by"];
        .name, (.p50_us | short), (.p90_us | short), (.tflops | short), .slower_than, ratio)), "";

# Without a device nothing was run: it compiled alone, say, and that says nothing of right or wrong.
(map(select(.problem and .gpu)) | group_by([.gpu, .problem_text]) | map(problem)) as $problems |
select($problems != []) |
{schema: "fa_bench.rbk_report/1", git: (map(.git // empty) | unique), problems: $problems} |
"rbk_report.json\t\(tojson)",
"rbk_report.md\t\(["# fa_bench as robust-kbench reports it", "", "Commits: \(.git | join(", ")). A ratio is accepted" +
    " above \(accepted), its 95 % interval included.", "", (.problems[] | markdown)] | join("\n") | tojson)"
