# The exit code of a record; $code where it has no status.
{pass: 0, wrong: 1, usage: 2, infeasible: 3, not_run: 4, timeout: 5, error: 6}[.status // ""] // $code
