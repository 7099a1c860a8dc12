# What the pictures of scripts/evidence/report.sh are drawn from.
include "numbers";
include "report";

# The problems of ladder.json, the smallest first.
def ladder_problems:
    map(select(.tflops != null)) | map(.problem) | unique_by(work) | .[];

# The bars of $problem: place, TFLOP/s, kernel, p50, and TFLOP/s at the ends of p50's interval. $records: of records.jq.
def ladder_bars:
    climbed as $order | .[] | select(.problem == $problem and .tflops != null) | .kernel as $k |
    ($records[0]["\(.problem)|\(.kernel)"].ci95 // [.p50_us, .p50_us]) as $ci |
    [($order | index($k)), .tflops, .kernel, (.p50_us | . * 10 | round / 10),
        (.tflops * .p50_us / ($ci[1], $ci[0]))] | @tsv;

# The kernels as gnuplot's tics.
def ladder_tics:
    climbed | to_entries | map("\"\(.value | gsub("_"; "\\\\_"))\" \(.key)") | join(", ");

# leaderboard.jsonl as cells, for up to four kernels: [{kernel, group, cells: [{m, warps, p50}]}], the fastest last.
# The canonical problem where it was swept, else the group with the most lines. Lines of an old source are left out (an
# infeasible tile has no compiled source to tell).
def sweep_cells:
    def knobs_of: .knobs | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber)}) | add;
    def has_tile: .knobs | test("(^|,)m=") and test("warps=");
    def is_canonical: .[0].group | test("\\|2,8,8,512,512,64,full\\|fp32$");
    def of_last_source: ([.[].source_sha256 | values] | last) as $now |
        map(select(.source_sha256 == null or .source_sha256 == $now));
    def cells: map(knobs_of + {p50: .p50_us}) | group_by([.m, .warps]) |
        map({m: .[0].m, warps: .[0].warps, p50: (map(.p50 | values) | min)});
    [inputs | fromjson? | select(has("knobs"))] | map(select((.status != "pass" or .p50_us != null) and has_tile)) |
    group_by(.group) | (map(select(is_canonical)) + (sort_by(length) | reverse)) | .[0] // [] |
    group_by(.kernel) | map(of_last_source) | map(select(any(.[]; .p50_us != null))) |
    map({kernel: .[0].kernel, group: .[0].group, cells: cells}) |
    sort_by(.cells | map(.p50 | values) | min) | reverse | .[:4];

# The cells of $kernel: column, row, p50, and what is shown: "x" where all that was tried is infeasible or wrong, "-"
# where nothing was tried.
def sweep_labels:
    def tenths: . * 10 | round / 10 | tostring | if contains(".") then . else . + ".0" end;
    def shown: if . == null then "-" elif .p50 == null then "x"
        else .p50 | if . < 100 then tenths else round | tostring end end;
    .[] | select(.kernel == $kernel) | .cells as $c |
    ($c | map(.m) | unique) as $ms | ($c | map(.warps) | unique) as $ws |
    $ws[] as $w | $ms[] as $m | ([$c[] | select(.m == $m and .warps == $w)][0]) as $cell |
    [($ms | index($m)), ($ws | index($w)), ($cell.p50 // "nan"), ($cell | shown)] | @tsv;

# Tics and range of an $axis (x or y) for the values of $knob in the cells of $kernel.
def sweep_axis:
    .[] | select(.kernel == $kernel) | .cells | map(.[$knob]) | unique |
    "set \($axis)tics (\(to_entries | map("\"\(.value)\" \(.key)") | join(", ")))",
    "set \($axis)range [-0.5:\(length - 0.5)]";

# ladder.json: its eight fastest kernels.
def roof_kernels:
    map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | max) | reverse | .[:8] | .[][0].kernel;

# ladder.json: FLOP per byte and TFLOP/s of $kernel.
def roof_points:
    .[] | select(.kernel == $kernel and .tflops != null) |
    [(.problem | split(",") | (.[2] | tonumber) / 2), .tflops] | @tsv;

# ladder.json: an arrow and a label at the FLOP per byte of each problem.
def roof_marks:
    map(select(.tflops != null) | .problem) | unique | group_by(split(",")[2])[] |
    (.[0] | split(",") | (.[2] | tonumber) / 2) as $x |
    "set arrow from \($x), graph 0 to \($x), graph 1 nohead lc rgb \"#bbbbbb\" dt 3 back",
    "set label \"\(join("\\n"))\" at \($x), graph 0.06 center font \",9\" tc rgb \"#808080\" front";

# peers.json: of $dim and $causal, at constant work: sequence length, TFLOP/s of ours and of each peer.
def peers_points:
    map(select(.dim == $dim and .causal == $causal and .us != null and .batch * .seq == 16384 and
        .heads * .dim == 2048)) |
    sort_by(.seq) | .[] |
    (if .causal then .seq * (.seq + 1) / 2 else .seq * .seq end) as $pairs |
    (4 * .batch * .heads * .dim * $pairs / 1e6) as $mflop |
    [.seq, $mflop / .us, (.peers | [.fa2, .cudnn, .[$fa3]] | .[] | if . then $mflop / . else "nan" end)] | @tsv;

# peers.json: a label and a line at the end of each group of shapes, in the order of lib/report/peers_paired.jq.
def peers_groups:
    map(select(.ratio != null)) | sort_by([.dim, .causal, .seq, .batch]) | to_entries |
    group_by([.value.dim, .value.causal]) | to_entries[] | .key as $group | .value |
    "set arrow from \(.[-1].key + 0.5), graph 0 to \(.[-1].key + 0.5), graph 1 nohead lc rgb '#bbbbbb' dt 3 back",
    "set label 'D=\(.[0].value.dim) \(.[0].value | mask)' at \((.[0].key + .[-1].key) / 2), " +
        "graph \(if length > 3 then 0.96 elif $group % 2 == 0 then 0.9 else 0.84 end) center font ',10'";

# peers.json: of each shape, by head dimension, mask and length: place, ratio alone, ratio in pairs with its interval.
def peers_paired:
    map(select(.ratio != null)) | sort_by([.dim, .causal, .seq, .batch]) | to_entries[] | .key as $i | .value |
    (paired_best.value // {}) as $p |
    [$i, .ratio, ($p.ratio // "nan"), ($p.ci95 // ["nan", "nan"] | .[0], .[1])] | @tsv;

# versus.json: the shapes of the kernel that has most of its rows, each with its least ratio at each pace; "ratio" for
# lib/report/peers_groups.jq.
def paces_shapes:
    map(select(.ratio)) | group_by(.kernel) | max_by(length) // [] | group_by(.problem) |
    map((group_by(.pace) | map({(.[0].pace): min_by(.ratio)}) | add) as $paces | .[0].problem |
        {batch, heads, seq: .seq_q,
        dim, causal, paces: ($paces | map_values({ratio, ci95})), ratio: ($paces.sustained // $paces.rested).ratio});

# The shapes of lib/report/paces_shapes.jq, in its order of plots: place, sustained ratio with its interval, rested.
def paces_points:
    sort_by([.dim, .causal, .seq, .batch]) | to_entries[] | .key as $i | .value.paces |
    [$i, (.sustained, .rested | .ratio, (.ci95 // [null, null])[])] | map(. // "nan") | @tsv;

# The points of the ladder on $problem, a line per kernel: its name, the measured time, then the percent of that
# time that the code keeps each pipe busy at least, by tensor, mufu, fma, alu, shared, issue and l2.
def pipe_bars:
    map(select((.file | startswith("ladder/")) and .problem == $problem and .pipe_clocks)) | sort_by(-.us) | .[] |
    (.us * (.mhz // .clock_mhz_max) / 100) as $percent |
    [(.kernel | gsub("_"; "\\_")), "\(.us | if . >= 100 then round else . * 10 | round / 10 end) us",
        (.pipe_clocks | (.tensor, .mufu, .fma, .alu, .shared, .issue, .l2) / $percent)] | @tsv;
