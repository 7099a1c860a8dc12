# The summary in words.
def share: "median \(.median | round) %, largest \(.largest | round) %";
"\(.with_bound) of \(.points) points have a bound; \(.current) are of today's machine code, " +
    "of these \(.below_bound | length) lie below their bound (of the others \(.not_current_below_bound)); " +
    "\(.seconds // 0) s",
(.kernels[] | "\(.kernel): \(.current) of \(.points) current" +
    if .percent_of_bound then "; the bound is \(.percent_of_bound | share) of the time" else "" end),
(.unknown[] | "no bound for \(.points) points: \(.reason)"),
(.below_bound[] | "BELOW: \(.us) us, bound \(.bound_us) us: \(.options)")
