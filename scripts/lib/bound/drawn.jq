# The registry as one line of options per tile and shape to time, of the GPU's architecture. $only: kernels, or [].
# $shapes: bound/shapes.txt. Knobs that change the layout or the class alone vary too, but not to FP16 sums.
($shapes | split("\n") | map(select(. != "" and (startswith("#") | not)))) as $shapes |
.[] | select(.kind == "hand") | .name as $k |
select(($only | length) == 0 or ($only | index($k))) |
[.values | {m, n, warps, vec, stages, swizzle, splits} | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] |
[combinations | add] | .[] as $tile | $shapes[] | "--kernel \($k) \(.)\($tile)"
