# The lines that are of the source of today ($now, by kernel), this $arch and this $problem.
# An old line names no problem: $default.
select(.arch == $arch and .source_sha256 == $now[.kernel] and (.problem // $default) == $problem)
