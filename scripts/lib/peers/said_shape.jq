# A shape for people. $kernel: what would run it.
include "peers/name";
"\(words): \($kernel), peers"
