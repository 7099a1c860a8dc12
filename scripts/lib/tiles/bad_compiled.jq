# Of a line: the sentence that makes the script fail, or nothing. $defaults: 1 when spills and warnings count.
select((.status != "pass" and .status != "infeasible") or (.status == "infeasible" and (.reason // "") == "") or
    ($defaults == 1 and (.status != "pass" or .spill_bytes > 0 or (.warnings | length) > 0))) |
"FAIL \(.point): \(.status) \(.reason // "") spills \(.spill_bytes) \(.warnings | join("; "))"
