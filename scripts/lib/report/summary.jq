# peers.json as the README's table. $folder: where it lies, named for the GPU.
include "report/numbers";
map(select(.ratio != null)) | (if all(.[]; .peers.fa3) then "fa3" else "fa3_scaled" end) as $fa3 |
def times($peer): [.[] | select(.peers[$peer] != null) | .peers[$peer] / .us] | mean | hundredths;
"\(map(.kernel) | names) on an \($folder | ascii_upcase), times as fast: geometric means over \(length) shapes. " +
"Above 1 ours is faster.", "",
(["head dim", "mask", "shapes", "FlashAttention 2", "cuDNN",
    "FlashAttention 3\(if $fa3 == "fa3" then "" else " (scaled)" end)"] | row), "|---|---|---|---|---|---|",
(group_by([.dim, .causal])[] | [.[0].dim, (.[0] | mask), length, times("fa2"), times("cudnn"), times($fa3)] |
    map(tostring) | row)
