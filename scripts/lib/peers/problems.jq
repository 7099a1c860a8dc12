# The shapes of the peers' grid as options of fa_bench, a line each, for $kernel.
include "peers/name";
.shapes[] | "--kernel \($kernel) \(options)"
