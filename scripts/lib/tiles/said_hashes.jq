# A line per rule: rule, options, hash. $rules: lines "OPTIONS #RULE". Input: the lines of line_hash.jq, as one array.
(map({key: .point, value: .}) | from_entries) as $by_point |
$rules | split("\n")[] | select(. != "") | split(" #") as [$point, $rule] | $by_point[$point] |
"\($rule) \($point) \(.code_sha256 // "\(.status): \(.reason)")"
