# The shapes whose name contains $only, in the element type $dtype. The grid's table of times is FP16's.
include "peers/name";
.shapes[] | select("\(name),\(if .causal then "causal" else "full" end)" | contains($only)) |
    . + {dtype: $dtype} | if $dtype == "fp16" then . else del(.table) end
