# The registry as one line of options per point to compile. $only: kernels, or []. $archs, $dims: comma-separated.
# $defaults: 1 for each kernel's default tile alone.
.[] | select(.kind == "hand") | select(($only | length) == 0 or (.name as $n | $only | index($n))) | . as $row |
($archs | split(",")[]) as $arch |
select(.arch_specific != true or ($arch | endswith("a"))) |
select(($arch | ltrimstr("sm_") | rtrimstr("a") | tonumber) >= .min_arch) |
($dims | split(",")[]) as $dim | ("", " --causal") as $causal |
"--kernel \(.name) --arch \($arch) --dim \($dim)\($causal)" as $base |
if $defaults == 1 then $base + " --seq 512", $base + " --seq 8192"
elif $causal != "" then empty
else [.values | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] | [combinations] | .[] | $base + add
end
