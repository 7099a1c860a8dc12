# peers.json as a table of the documents. $file: its name.
include "report/numbers";
include "typed";
map(select(.ratio != null)) | (if all(.[]; .peers.fa3) then "fa3" else "fa3_scaled" end) as $fa3 |
map(.paired_ratio | values) as $paired | ($paired != []) as $is_paired |
"\(map(.kernel) | names)\(.[0] | typed | ascii_upcase): best peer / ours (above 1: ours is faster), " +
"geometric mean \(map(.ratio) | mean | hundredths) over \(length) shapes; every shape in `\($file)`.",
(if $is_paired then "solo: each timed alone, power-limited; paired: ABBA in one process, " +
    "geometric mean of the least ratio \($paired | mean | hundredths) over \($paired | length) shapes." else empty end),
"",
(["head dim", "mask", "shapes", "over FlashAttention 2", "over cuDNN",
    "over FlashAttention 3\(if $fa3 == "fa3" then "" else " (scaled)" end)", "over the best"] +
    if $is_paired then ["over the best, paired"] else [] end | row),
"|---|---|---|---|---|---|---|" + if $is_paired then "---|" else "" end,
(group_by([.dim, .causal]) | .[] | . as $rows | [.[0].dim, (.[0] | mask), length] +
    (["fa2", "cudnn", $fa3] | map(. as $p |
        [$rows[] | select(.peers[$p] != null) | .peers[$p] / .us] | mean | hundredths)) +
    [map(.ratio) | mean | hundredths] +
    if $is_paired then [map(.paired_ratio | values) | mean | hundredths] else [] end | map(tostring) | row)
