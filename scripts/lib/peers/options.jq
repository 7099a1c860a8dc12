# A shape as options of fa_bench.
include "peers/name";
options
