# The registry (fa_bench --list-kernels --json -) as the configurations that its rules select, a line of options each.
# $archs: comma-separated. Per rule the largest head dim that it serves and, where that is 64, 128 or 256, one that is
# no multiple of 64. A rule counts on the architectures that it matches. Where a kernel has no rule for every problem of
# a dim, its default tile counts as one.
# splits 0 (as many as fill the GPU) becomes 1 and 3.

def odd_dim: {"64": 40, "128": 72, "256": 136}[tostring] // empty;

def tile_options: to_entries | map("--\(.key) \(.value)") | join(" ");

def with_splits: if .splits == 0 then (.splits = 1), (.splits = 3) else . end;

def number: ltrimstr("sm_") | rtrimstr("a") | tonumber;

def matches($arch): (.min_arch == null or ($arch | number) >= .min_arch) and
    (.max_arch == null or ($arch | number) <= .max_arch);

def is_for_all($dim): .max_dim >= $dim and .causal == null and .max_fill_percent == null and .max_rows == null and
    .max_seq == null and .min_group == null and .min_keys == null;

# With the rules' places in the registry; the defaults follow.
def rules_and_defaults($arch):
    . as $row | [.rules | to_entries[] | select(.value | matches($arch))] as $rules |
    $rules[], ([64, 128, 256] | to_entries[] | select(.value as $dim | any($rules[]; .value | is_for_all($dim)) | not) |
        {key: (.key + ($row.rules | length)),
        value: {serves: $row.name, max_dim: .value, causal: null, config: $row.defaults}});

def serves_arch($row): (endswith("a") or ($row.arch_specific | not)) and
    number >= $row.min_arch;

. as $rows |
($archs | split(",")[]) as $arch |
$rows[] | select(.kind == "hand" and .variant_of == null) |
.name as $name | select(($only | length) == 0 or ($only | index($name))) |
. as $row | select($arch | serves_arch($row)) |
rules_and_defaults($arch) | .key as $index | .value |
.serves as $serves | .max_dim as $max_dim |
(if .causal == null then "", " --causal" elif .causal then " --causal" else "" end) as $mask |
($max_dim, ($max_dim | odd_dim)) as $dim |
(.config | with_splits | tile_options) as $tile |
"--kernel \($serves) --arch \($arch) --dim \($dim)\($mask) \($tile) #\($name):\($index + 1)"
