# The curves of scripts/replay.sh (with jq -s) as a table: the median of the best time over the best recorded.
include "numbers";
.[0].after as $after |
"| recorded | strategy | seeds | \($after | map("after \(.)") | join(" | ")) | found the best |",
"|---|---|---|\($after | map("---|") | add)---|",
(.[] | "| \(.swept), \(.points) points | \(.strategy) | \(.seeds) | \(.median_over_best | map(thousandths | tostring) |
    join(" | ")) | \(.found_best[-1]) of \(.seeds) |")
