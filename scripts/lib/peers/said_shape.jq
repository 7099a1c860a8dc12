# A shape for people. $kernel: what would run it.
include "peers/name";
"\(name)\(if .causal then " causal" else "" end): \($kernel), peers"
