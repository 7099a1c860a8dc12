# The rows of the page's tables, cells as report/html takes them.
include "report/numbers";
include "report/html";
include "pairs/name";
def count(f): map(select(f)) | length;
def knobs: if . == null then null else to_entries | map("\(.key)=\(.value)") | join(" ") end;
def tile: if . == null then null else "m=\(.m) n=\(.n) warps=\(.warps) vec=\(.vec) stages=\(.stages)" end;
def shape: "\(.batch),\(.heads),\(.seq_q // .seq),\(.dim)";
def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor]
    else (.[length / 2 - 1] + .[length / 2]) / 2 end;

# $records: of lib/report/records.jq, which says the interval of each p50 and where the record lies.
def ladder_rows($records): sort_by([(.problem | work), -(.p50_us // 0)]) | .[] |
    ($records[.problem + "|" + .kernel] // {}) as $r |
    [.problem, (.kernel | link($r.file)), (.config | tile), (.p50_us | figure), ($r.ci95 | between), (.p90_us | figure),
        (.tflops | figure), .vs, (.ratio | decimals(2)), (.ci95 | ratio_between)];
def best_rows: .[] | [(.p50_us | figure), (.p90_us | figure), .kernel, (.knobs | gsub(","; " ")), (.registers | whole),
    (.smem_bytes | whole)];
def paired_best: (.paired // {}) | to_entries | min_by(.value.ratio);
def peer_rows: .[] | paired_best as $p | [shape, mask, .variant // .kernel, (.us | figure),
    (.tflops | figure), .best_peer, (.peers[.best_peer // ""] | figure),
    (if .ratio then .ratio | decimals(2) else .status end),
    $p.key, ($p.value.ratio | decimals(2)), ($p.value.ci95 | ratio_between)];
def versus_rows: .[] | [name, .pace, .variant // .kernel, (.solo_us | figure), (.tflops | figure),
    (.sm_clock_mhz | whole), (.percent_of_peak | decimals(1)), (.p50_us | figure), .vs_version // .vs,
    (.vs_p50_us | figure), (if .ratio then .ratio | decimals(2) else .status end), (.ci95 | ratio_between)];
# Per kernel, pace and peer; of several peers also over the fastest on each shape.
def fastest_peer: group_by(.problem) | map(min_by(.ratio) | .best = true);
def pace_rows: map(select(.ratio)) | group_by([.kernel, .pace])[] |
    (group_by(.vs)[], (select(map(.vs) | unique | length > 1) | fastest_peer)) |
    [.[0].kernel, .[0].pace, (if .[0].best then "the fastest measured" else .[0] | .vs_version // .vs end),
    (length | whole), (map(.ratio) | (mean, min, max) | decimals(2)), (count(.ratio > 1) | whole)];
def parity_rows: group_by(.kernel)[] | [.[0].kernel, (count(.verdict == "PASS") | whole),
    (count(.verdict == "FAIL") | whole), (count(.verdict == "NOT-RUN") | whole),
    (map(.max_abs_difference_to_torch // 0) | max | figure), (map(.max_abs_err // 0) | max | figure)];
def rate_rows: .[] | [.kernel, (.group | split("|")[2]), .strategy, (.candidates | whole),
    (.status | to_entries | map("\(.key) \(.value)") | join(", ")), (.measured | whole), (.compiled_cold | whole),
    (.seconds | figure), (.per_second | figure), (.per_second * 60 | whole)];
def stage_rows: .[] | [.kernel, (.compile | decimals(3)),
    (.stages | (.start, .check, .timing, .recheck, .turn) | decimals(3))];
def serving_rows: .[] | [(.problem | shape), (.problem.kv_heads | whole), (.problem.seq_kv | whole), (.problem | mask),
    .variant // .kernel, (.config | tile), (.timing.p50_us | figure), (.timing.p50_ci95_us | between),
    (.throughput.tflops | figure), (.throughput.gbytes_per_s | figure)];
def bound_kernel_rows: group_by(.kernel)[] | [.[0].kernel, (length | whole),
    (map(.percent_of_bound | values) | (min, median, max) | figure), (count(.us < .bound_us) | whole),
    (group_by(.binds) | sort_by(-length) | map("\(.[0].binds) \(length)") | join(", "))];
def pipe_rows: map(select((.file // "" | startswith("ladder/")) and .pipe_clocks)) |
    sort_by((.problem | work), .us) | .[] | (.mhz // .clock_mhz_max) as $mhz |
    [.kernel, .problem, (.us | figure), (.bound_us | figure),
        (.pipe_clocks | (.tensor, .mufu, .fma, .alu, .shared, .issue, .l2) / $mhz | figure), .binds];
def bound_rows: group_by([.kernel, .problem]) | map(min_by(.us)) | sort_by(-.percent_of_bound) | .[] |
    [.kernel, .problem, (.options | [scan("--(m|n|warps|stages) ([0-9]+)") | join("=")] | join(" ")),
        (.us | figure), (.bound_us | figure), (.percent_of_bound | figure), .binds];
def counted_rows: .kernels[] | [.kernel, (.passed | whole),
    (.failed | whole | if .v > 0 then .class = "FAIL" else . end), (.skipped | whole), (.not_run | whole)];
