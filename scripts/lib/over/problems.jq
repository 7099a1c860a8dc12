# A grid's shapes as options of fa_bench, a line each.
include "peers/name";
.shapes[] | options + if .kv_heads then " --kv-heads \(.kv_heads)" else "" end
