# The points of bound_time.sh (with -s) in words.
def below: map(select((.percent_of_bound // 0) > 100));
map(select(.p50_us)) as $timed |
"\($timed | length) timed, \(map(select(.status == "infeasible")) | length) infeasible, " +
    "\(map(select(.status != "pass" and .status != "infeasible")) | length) others; " +
    "\($timed | below | length) below their bound",
($timed | group_by(.variant // .kernel)[] | (map(.percent_of_bound | values) | sort) as $shares |
    "\(.[0].variant // .[0].kernel): \(length) timed, the bound is " +
    if $shares == [] then "not known: \(.[0].bound_unknown)"
    else "median \($shares[length / 2 | floor] | round) %, largest \($shares[-1] | round) % of the time" end),
(.[] | select(.status != "pass" and .status != "infeasible") | "\(.status): \(.reason): \(.point)"),
($timed | below[] | "BELOW: \(.percent_of_bound) %: \(.point)")
