# The leaderboard with $entry for $kernel in $group. The same tile of the same source keeps the entry it has. The first
# kernel of a group leads it.
def content: [.knobs, .source_sha256];
if any(.[]; .group == $group) then . else . + [{group: $group, leader: null, kernels: {}}] end |
map(if .group != $group then . else
    .leader //= $kernel |
    if (.kernels[$kernel] | content) == ($entry | content) then . else .kernels[$kernel] = $entry end end)
