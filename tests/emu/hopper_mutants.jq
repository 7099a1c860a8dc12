# The lines of the mutants (with jq -s) as their summary. $known: how many the table has; a sample tries fewer.
(map(select(.verdict == "CAUGHT")) | length) as $caught |
{what: "hopper_mutants", caught: $caught, missed: (length - $caught), known: $known,
    kernels: (group_by(.kernel) |
        map({kernel: .[0].kernel, caught: map(select(.verdict == "CAUGHT")) | length, of: length})),
    mutants: .}
