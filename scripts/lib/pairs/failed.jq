# False when a record is of a run that failed: a peer that cannot serve a problem has not failed.
all(.status | IN("pass", "not_run", "infeasible"))
