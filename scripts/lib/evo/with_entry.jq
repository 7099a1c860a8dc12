# The leaderboard with $entry for $kernel in $group. The same tile of the same source keeps the entry it has. The first
# kernel of a group leads it.
if any(.[]; .group == $group) then . else . + [{group: $group, leader: $kernel, kernels: {}}] end |
map(if .group == $group and (.kernels[$kernel] | [.knobs, .source_sha256]) != ($entry | [.knobs, .source_sha256]) then
    .kernels[$kernel] = $entry else . end)
