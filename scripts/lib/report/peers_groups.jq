# peers.json: a label and a line at the end of each group of shapes, in the order of lib/report/peers_paired.jq.
include "report/numbers";
map(select(.ratio != null)) | sort_by([.dim, .causal, .seq, .batch]) | to_entries |
group_by([.value.dim, .value.causal]) | to_entries[] | .key as $group | .value |
"set arrow from \(.[-1].key + 0.5), graph 0 to \(.[-1].key + 0.5), graph 1 nohead lc rgb '#bbbbbb' dt 3 back",
"set label 'D=\(.[0].value.dim) \(.[0].value | mask)' at \((.[0].key + .[-1].key) / 2), " +
    "graph \(if length > 3 then 0.96 elif $group % 2 == 0 then 0.9 else 0.84 end) center font ',10'"
