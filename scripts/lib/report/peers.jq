# peers.json as a table of the documents. $file: its name. Shapes of a kind (decode, prefill) are groups of their own.
include "report/numbers";
include "typed";
def usual($fa3): [["fa2", "FlashAttention 2"], ["cudnn", "cuDNN"],
    [$fa3, "FlashAttention 3" + if $fa3 == "fa3" then "" else " (scaled)" end]];
def others: [["fa4", "FlashAttention 4"], ["flashinfer_fa2", "FlashInfer fa2"], ["flashinfer_fa3", "FlashInfer fa3"]];

map(select(.ratio != null)) | (if all(.[]; .peers.fa3) then "fa3" else "fa3_scaled" end) as $fa3 |
[.[].peers | keys[]] as $there | def is_there: .[0] as $name | any($there[]; . == $name);
(others | map(select(is_there))) as $others |
(usual($fa3) | if $others == [] then . else map(select(is_there)) + $others end) as $columns |
map(.paired_ratio | values) as $paired | ($paired != []) as $is_paired |
"\(map(.kernel) | names)\(.[0] | typed | ascii_upcase): best peer / ours (above 1: ours is faster), " +
"geometric mean \(map(.ratio) | mean | hundredths) over \(length) shapes; every shape in `\($file)`.",
(if $is_paired then "solo: each timed alone, power-limited; paired: ABBA in one process, " +
    "geometric mean of the least ratio \($paired | mean | hundredths) over \($paired | length) shapes." else empty end),
"",
(["head dim", "mask", "shapes"] + ($columns | map("over \(.[1])")) + ["over the best"] +
    if $is_paired then ["over the best, paired"] else [] end | row),
"|" + "---|" * (4 + ($columns | length)) + if $is_paired then "---|" else "" end,
(group_by([.dim, .kind, .causal]) | .[] | . as $rows |
    [(.[0] | "\(.dim)" + if .kind then ", \(.kind)" else "" end), (.[0] | mask), length] +
    ($columns | map(.[0] as $p | [$rows[] | select(.peers[$p] != null) | .peers[$p] / .us] | mean | hundredths)) +
    [map(.ratio) | mean | hundredths] +
    if $is_paired then [map(.paired_ratio | values) | mean | hundredths] else [] end | map(tostring) | row)
