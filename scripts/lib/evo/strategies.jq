# The curves of scripts/replay.sh (with jq -s) as a table: the median of the best time over the best recorded.
def figure: if . == null then "-" else (. * 1000 | round / 1000) end;
.[0].after as $after |
"| recorded | strategy | seeds | \($after | map("after \(.)") | join(" | ")) | found the best |",
"|---|---|---|\($after | map("---|") | add)---|",
(.[] | "| \(.swept), \(.points) points | \(.strategy) | \(.seeds) | \(.median_over_best | map(figure | tostring) |
    join(" | ")) | \(.found_best[-1]) of \(.seeds) |")
