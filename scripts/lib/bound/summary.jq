# Points with their bounds (with jq -s) as a summary: how many lie below their bound. Only a point whose bound is of the
# machine code that was timed is a proof; the others are counted. $seconds: what compiling and reading the machine code
# took. $git: the commit that it was compiled at.
def median: sort | .[length / 2 | floor];
def shares: map(.percent_of_bound) | if length == 0 then null else {median: median, largest: max} end;
def counts: {points: length, same_code: (map(select(.code_of)) | length)};

map(select(.bound_us)) as $known | ($known | map(select(.code_of))) as $proofs |
counts + {with_bound: ($known | length), seconds: $seconds, git: $git,
    below_bound: ($proofs | map(select(.percent_of_bound > 100))),
    other_code_below_bound: ($known | map(select(.code_of == null and .percent_of_bound > 100)) | length),
    unknown: (map(select(.bound_us | not)) | group_by(.unknown) | map({reason: .[0].unknown, points: length})),
    percent_of_bound: ($proofs | shares),
    kernels: ($known | group_by(.kernel) | map({kernel: .[0].kernel} + counts +
        {percent_of_bound: (map(select(.code_of)) | shares)})),
    files: (group_by(.file) | map({file: .[0].file} + counts))}
