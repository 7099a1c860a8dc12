# versus.json as a table of the documents. $file: its name.
include "report/numbers";
def cell: if . == [] then "-" else "\(mean | hundredths) (\(min | hundredths))" end;
map(select(.ratio)) as $timed | ($timed | map(.vs) | unique) as $peers |
"By `--vs`, ABBA in one process: times as fast, geometric mean and in brackets the least. sustained: back to back;",
"rested: each launch after a pause, the L2 cold. Peers: " +
    ($timed | map(.vs_version // .vs) | unique | join(", ")) + ".",
"Every shape in `\($file)`.", "",
(["kernel", "pace", "head dim", "mask", "shapes"] + ($peers | map("over \(code)")) + ["over the best", "ahead"] | row),
"|\("---|" * (7 + ($peers | length)))",
($timed | group_by([.kernel, .pace, .problem.dim, .problem.causal]) | .[] |
    (group_by(.problem) | map(map(.ratio) | min)) as $best |
    [(.[0].kernel | code), .[0].pace, .[0].problem.dim, (.[0].problem | mask), ($best | length)] +
    [$peers[] as $peer | map(select(.vs == $peer).ratio) | cell] +
    [($best | cell), ($best | map(select(. >= 1)) | length)] | map(tostring) | row),
(map(select(.ratio == null)) | .[] | "| `\(.kernel)` | \(.pace) | " +
    "\(.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim) \(mask)"): \(.status) |" + " |" * (4 + ($peers | length)))
