# Of a record (jq -s), in three lines: what its results are compared with (GPU, target, problem, class, conditions), its
# commit, and its tile as a point of $space, empty where it is none. Nothing for what is no record.
include "is_record";
include "typed";
def tile:
    .config as $c | [$space | to_entries[] | select($c[.key] as $v | .value | index([$v]))] |
    if length == ($space | length) then map("\(.key)=\($c[.key])") | join(",") else "" end;
select(length == 1) | .[0] | select(is_record) |
(.problem | "\(.batch),\(.heads),\(.kv_heads),\(.seq_q),\(.seq_kv),\(.dim)," +
    if .causal then "causal" else "full" end + typed) as $problem |
"\($gpu)|\($arch)|\($problem)|\(.config.acc // "fp32")\($conditions)", .provenance.git // "none", tile
