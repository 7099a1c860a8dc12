# versus.json as a table of the documents. $file: its name.
include "report/numbers";
def cell: if . == [] then "-" else "\(mean | hundredths) (\(min | hundredths))" end;
(map(.vs // empty) | names) as $library |
(map(.vs_compiler // empty) | unique | join(", ") | if . == "" then "" else " (\(.))" end) as $version |
"By `--vs`, ABBA in one process: times as fast, geometric mean and in brackets the least. FlashAttention 3 is its time",
"in the table of `scripts/lib/peers/grid.json` x the time of \($library)\($version) here / that of cuDNN there.",
"Every shape in `\($file)`.", "",
(["kernel", "head dim", "mask", "shapes", "over \($library)", "over FlashAttention 3 (scaled)", "over the best",
    "ahead"] | row),
"|---|---|---|---|---|---|---|---|",
(map(select(.ratio != null)) | map(
    .over_fa3 = (if .fa3_scaled then .fa3_scaled / .p50_us else null end) |
    .best = ([.ratio, .over_fa3] | map(values) | min) |
    .dim = (.problem | split(" ")[0] | split(",")[3] | tonumber) |
    .causal = (.problem | endswith("causal"))) |
    group_by([.kernel, .dim, .causal]) | .[] |
    [(.[0].kernel | code), .[0].dim, (.[0] | mask), length, (map(.ratio) | cell), (map(.over_fa3 | values) | cell),
        (map(.best) | cell), (map(select(.best >= 1)) | length)] | map(tostring) | row),
(map(select(.ratio == null)) | .[] | "| `\(.kernel)` | \(.problem): \(.status) | | | | | | |")
