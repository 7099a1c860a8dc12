# The eight fastest results of the log in $group, of the sources of today ($sources: an object of them for each kernel).
($sources | add // {}) as $sources |
map(select(.group == $group and .source_sha256 != null and .source_sha256 == $sources[.kernel])) |
group_by(.key) | map(last) | map(select(.status == "pass" and .p50_us != null and (.loosened | not))) |
group_by([.kernel, .knobs]) | map(last) | sort_by(.p50_us) | .[:8] |
map({kernel, variant, knobs, p50_us, p90_us, registers, smem_bytes, group, arch, problem, config, code_sha256, git})
