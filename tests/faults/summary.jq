# The lines of the faults as their summary.
def total(f): map(select(f).count) | add // 0;
{what: "faults", kills: total(.name | startswith("kill_")), survived: total(.verdict == "SURVIVED"),
    failed: (map(select(.verdict == "FAILED")) | length), not_run: (map(select(.verdict == "NOT-RUN")) | length),
    faults: .}
