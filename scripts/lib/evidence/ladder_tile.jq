# The tile of $kernel on $problem (B,H,S,D) in ladder.json, as "m=64,n=128,..."; nothing without one.
[.[] | select(.problem == $problem and .kernel == $kernel and .tile)][0].config // empty |
to_entries | map("\(.key)=\(.value)") | join(",")
