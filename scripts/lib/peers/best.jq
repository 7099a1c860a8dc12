# Of records: the first that failed, else the fastest, else the first.
map(select(.status == "pass" and .timing.p50_us != null)) as $good |
map(select(.status | IN("infeasible", "not_run", "pass") | not)) as $bad |
if $bad != [] then $bad[0] elif $good != [] then $good | min_by(.timing.p50_us) else .[0] end
