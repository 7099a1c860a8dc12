# The cells of $kernel: column, row, p50, and what is shown: "x" where all that was tried is infeasible or wrong, "-"
# where nothing was tried.
def tenths: . * 10 | round / 10 | tostring | if contains(".") then . else . + ".0" end;
def shown: if . == null then "-" elif .p50 == null then "x"
    else .p50 | if . < 100 then tenths else round | tostring end end;
.[] | select(.kernel == $kernel) | .cells as $c | ($c | map(.m) | unique) as $ms | ($c | map(.warps) | unique) as $ws |
$ws[] as $w | $ms[] as $m | ([$c[] | select(.m == $m and .warps == $w)][0]) as $cell |
[($ms | index($m)), ($ws | index($w)), ($cell.p50 // "nan"), ($cell | shown)] | @tsv
