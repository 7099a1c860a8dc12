# A record: the name of its files.
include "typed";
.variant + (.problem | "_\(.batch)x\(.heads)x\(.seq_q)x\(.dim)" +
    if .causal then "_causal" else "" end + (typed | sub(" "; "_"))) +
(.config // {} | to_entries | map("_\(.key)\(.value)") | join(""))
