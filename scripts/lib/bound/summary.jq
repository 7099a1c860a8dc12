# Points with their bounds (with jq -s) as a summary: how many lie below their bound. Only a point whose machine code is
# what compiled then is a proof; the others are counted. $seconds: what compiling and reading the machine code took.
# $git: the commit that it was compiled at.
def median: sort | .[length / 2 | floor];
def shares: map(.percent_of_bound) | if length == 0 then null else {median: median, largest: max} end;
def counts: {points: length, current: (map(select(.current)) | length)};

map(select(.bound_us)) as $known | ($known | map(select(.current))) as $current |
{points: length, with_bound: ($known | length), current: ($current | length), seconds: $seconds, git: $git,
    below_bound: ($current | map(select(.percent_of_bound > 100))),
    not_current_below_bound: ($known | map(select(.current == false and .percent_of_bound > 100)) | length),
    unknown: (map(select(.bound_us | not)) | group_by(.unknown) | map({reason: .[0].unknown, points: length})),
    percent_of_bound: ($current | shares),
    kernels: ($known | group_by(.kernel) | map({kernel: .[0].kernel} + counts +
        {percent_of_bound: (map(select(.current)) | shares)})),
    files: (group_by(.file) | map({file: .[0].file} + counts))}
