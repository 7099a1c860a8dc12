# What results of a record are compared with: GPU, target, problem, class, conditions.
include "typed";
(.problem | "\(.batch),\(.heads),\(.kv_heads),\(.seq_q),\(.seq_kv),\(.dim)," +
    if .causal then "causal" else "full" end + typed) as $problem |
"\($gpu)|\($arch)|\($problem)|\(.config.acc // "fp32")\($conditions)"
