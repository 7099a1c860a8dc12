# What the pictures of scripts/evidence/report.sh are drawn from.
include "record";
include "report";
include "pairs";

# The problems of rows of the ladder, the smallest first.
def ladder_problems:
    map(select(.tflops != null)) | map(.problem) | unique_by(work) | .[];

# The bars of $problem: place, TFLOP/s, kernel, p50, and TFLOP/s at the ends of p50's interval.
def ladder_bars:
    climbed as $order | .[] | select(.problem == $problem and .tflops != null) | .kernel as $k |
    (if .p50_ci95[0]? then .p50_ci95 else [.p50_us, .p50_us] end) as $ci |
    [($order | index($k)), .tflops, .kernel, (.p50_us | . * 10 | round / 10),
        (.tflops * .p50_us / ($ci[1], $ci[0]))] | @tsv;

# The kernels as gnuplot's tics.
def ladder_tics:
    . as $rows | climbed | to_entries | map(.value as $k | first($rows[] | select(.kernel == $k).version) as $version |
        "\"\($k | gsub("_"; "\\\\_"))\($version // "" | if . == "" then . else "\\n" + sub(".* "; "") end)\" " +
        "\(.key)") | join(", ");

# leaderboard.jsonl as cells, for up to four kernels: [{kernel, group, cells: [{m, warps, p50}]}], the fastest last.
# The canonical problem where it was swept, else the group with the most lines. Lines of an old source are left out (an
# infeasible tile has no compiled source to tell).
def sweep_cells:
    def knobs_of: .knobs | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber)}) | add;
    def has_tile: .knobs | test("(^|,)m=") and test("warps=");
    def is_canonical: .[0].group | test("\\|2,8,8,512,512,64,full\\|fp32$");
    def of_last_source: ([.[].source_sha256 | values] | last) as $now |
        map(select(.source_sha256 == null or .source_sha256 == $now));
    def cells: map(knobs_of + {p50: .p50_us, beaten: (.status == "beaten")}) | group_by([.m, .warps]) |
        map({m: .[0].m, warps: .[0].warps, p50: (map(.p50 | values) | min), beaten: any(.[]; .beaten)});
    [inputs | fromjson? | select(has("knobs"))] | map(select((.status != "pass" or .p50_us != null) and has_tile)) |
    group_by(.group) | (map(select(is_canonical)) + (sort_by(length) | reverse)) | .[0] // [] |
    group_by(.kernel) | map(of_last_source) | map(select(any(.[]; .p50_us != null))) |
    map({kernel: .[0].kernel, group: .[0].group, cells: cells}) |
    sort_by(.cells | map(.p50 | values) | min) | reverse | .[:4];

# The cells of $kernel: column, row, p50, and what is shown: "x" where all that was tried is infeasible or wrong, "-"
# where nothing was tried, ">" where all that ran was slower than the best and not timed to the end.
def sweep_labels:
    def tenths: . * 10 | round / 10 | tostring | if contains(".") then . else . + ".0" end;
    def shown: if . == null then "-" elif .p50 == null then (if .beaten then ">" else "x" end)
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

# Rows of the ladder: its eight fastest kernels.
def roof_kernels:
    map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | max) | reverse | .[:8] | .[][0].kernel;

# Rows of the ladder: FLOP per byte and TFLOP/s of $kernel.
def roof_points:
    .[] | select(.kernel == $kernel and .tflops != null) |
    [(.problem | split(",") | (.[2] | tonumber) / 2), .tflops] | @tsv;

# Rows of the ladder: an arrow and a label at the FLOP per byte of each problem.
def roof_marks:
    map(select(.tflops != null) | .problem) | unique | group_by(split(",")[2])[] |
    (.[0] | split(",") | (.[2] | tonumber) / 2) as $x |
    "set arrow from \($x), graph 0 to \($x), graph 1 nohead lc rgb \"#bbbbbb\" dt 3 back",
    "set label \"\(join("\\n"))\" at \($x), graph 0.06 center font \",9\" tc rgb \"#808080\" front";

# Rows of pairs: the pace at which most shapes of the main kernel were measured, and its peers, [{vs, name}].
def peers_columns:
    main_kernel | group_by(.pace) | max_by(length) // [] | {pace: .[0].pace,
        peers: (map({vs, name: (.vs_version // .vs)}) | unique_by(.vs))};

# Rows of pairs, of $dim and $causal at constant work: sequence length, TFLOP/s of ours (the mean over its pairs) and of
# each peer. $columns: of peers_columns.
def peers_points:
    def per($us): if $us == null then "nan" else (if .causal then .seq_q * (.seq_q + 1) / 2 else .seq_q * .seq_q end) *
        4 * .batch * .heads * .dim / 1e6 / $us end;
    main_kernel | map(select(.pace == $columns.pace and (.problem | .dim == $dim and .causal == $causal and
        .batch * .seq_q == 16384 and .heads * .dim == 2048 and .seq_q == .seq_kv and .heads == .kv_heads))) |
    group_by(.problem.seq_q)[] | . as $pairs | .[0].problem |
    [.seq_q, per($pairs | map(.p50_us) | mean),
        per($columns.peers[].vs as $vs | [$pairs[] | select(.vs == $vs).vs_p50_us][0])] | @tsv;
