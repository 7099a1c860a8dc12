# Of a line: the sentence of a hole, or nothing.
select(.status != "pass" and (.status != "infeasible" or (.reason // "") == "")) |
"HOLE \(.point): \(.status) \(.reason // "")"
