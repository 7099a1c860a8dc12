# peers.json: of each shape, by head dimension, mask and length: place, ratio alone, ratio in pairs with its interval.
include "report/numbers";
include "report/html";
include "report/rows";
map(select(.ratio != null)) | sort_by([.dim, .causal, .seq, .batch]) | to_entries[] | .key as $i | .value |
(paired_best.value // {}) as $p |
[$i, .ratio, ($p.ratio // "nan"), ($p.ci95 // ["nan", "nan"] | .[0], .[1])] | @tsv
