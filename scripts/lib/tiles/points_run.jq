# The registry as one line of options per point to run, without the knobs that only vary the layout (swizzle) or the
# class (acc). $only: kernels, or [] for those with a wmma tile grid. $dims: comma-separated.
.[] | select(.kind == "hand") |
select(if ($only | length) > 0 then .name as $n | $only | index($n) else .tensor_cores == "wmma" end) |
.name as $k | ($dims | split(",")[]) as $dim |
[.values | {m, n, warps, vec, stages} | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] |
[combinations] | .[] |
"--kernel \($k) --dim \($dim)" + add + " "
