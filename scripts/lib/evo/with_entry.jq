# The leaderboard with $entry for $kernel in $group.
if any(.[]; .group == $group) then . else . + [{group: $group, leader: null, kernels: {}}] end |
map(if .group == $group then .kernels[$kernel] = $entry else . end)
