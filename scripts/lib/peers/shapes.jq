# The shapes whose name contains $only.
include "peers/name";
.shapes[] | select("\(name),\(if .causal then "causal" else "full" end)" | contains($only))
