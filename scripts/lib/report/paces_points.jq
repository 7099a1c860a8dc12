# The shapes of lib/report/paces_shapes.jq, in its order of plots: place, sustained ratio with its interval, rested.
sort_by([.dim, .causal, .seq, .batch]) | to_entries[] | .key as $i | .value.paces |
[$i, (.sustained, .rested | .ratio, (.ci95 // [null, null])[])] | map(. // "nan") | @tsv
