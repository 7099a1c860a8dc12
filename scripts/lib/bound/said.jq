# The summary in words.
def share: "median \(.median | round) %, largest \(.largest | round) %";
"\(.with_bound) of \(.points) points have a bound, \(.same_code) of the machine code that was timed; " +
    "of these \(.below_bound | length) lie below it (of the others \(.other_code_below_bound)); " +
    "\(.seconds // 0) s",
(.kernels[] | "\(.kernel): \(.same_code) of \(.points)" +
    if .percent_of_bound then "; the bound is \(.percent_of_bound | share) of the time" else "" end),
(.unknown[] | "no bound for \(.points) points: \(.reason)"),
(.below_bound[] | "BELOW: \(.us) us, bound \(.bound_us) us: \(.options)")
