# The registry (fa_bench --list-kernels --json -) as the configurations that its rules select, a line of options each.
# $archs: comma-separated. Per rule two head dims: the largest that it serves and one that is no multiple of 64.
# A kernel without rules counts as one rule per dim with its default tile.
# splits 0 (as many as fill the GPU) becomes 1 and 3.

def odd_dim: {"64": 40, "128": 72, "256": 136}[tostring];

def tile_options: to_entries | map("--\(.key) \(.value)") | join(" ");

def with_splits: if .splits == 0 then (.splits = 1), (.splits = 3) else . end;

def rules_or_defaults:
    if (.rules | length) > 0 then .rules
    else .name as $serves | .defaults as $config | [64, 128, 256] | map({$serves, max_dim: ., causal: null, $config})
    end;

def serves_arch($row): (endswith("a") or ($row.arch_specific | not)) and
    (ltrimstr("sm_") | rtrimstr("a") | tonumber) >= $row.min_arch;

. as $rows |
($archs | split(",")[]) as $arch |
$rows[] | select(.kind == "hand" and .variant_of == null) |
.name as $name | select(($only | length) == 0 or ($only | index($name))) |
. as $row | select($arch | serves_arch($row)) |
rules_or_defaults | to_entries[] | .key as $index | .value |
.serves as $serves | .max_dim as $max_dim |
(if .causal == null then "", " --causal" elif .causal then " --causal" else "" end) as $mask |
($max_dim, ($max_dim | odd_dim)) as $dim |
(.config | with_splits | tile_options) as $tile |
(if .max_fill_percent == null or (.min_keys != null and $serves == $name) then " --batch 64 --seq 8192" else "" end)
    as $large | # or a variant would serve it
"--kernel \($serves) --arch \($arch) --dim \($dim)\($mask)\($large) \($tile) #\($name):\($index + 1)"
