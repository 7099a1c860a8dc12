# The tile of a record as a point of $space; nothing where it is none.
.config as $c | [$space | to_entries[] | select($c[.key] as $v | .value | index([$v]))] |
if length == ($space | length) then map("\(.key)=\($c[.key])") | join(",") else "" end
