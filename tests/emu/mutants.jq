# The lines of the mutants (with jq -s) as their summary. $explained: lines of FILE, FUNCTION, STATEMENT, NUMBER, WHY by
# tabs; $all: 1 when every kernel was looked at, so that an explanation without a survivor is stale.
def place: {file, function, statement, number};
def is_line: length > 0 and (startswith("#") | not);
($explained | split("\n") | map(select(is_line) | split("\t") |
    {file: .[0], function: .[1], statement: .[2], number: (.[3] | tonumber)})) as $keys |
map(select(.verdict == "CAUGHT")) as $caught | map(select(.verdict != "CAUGHT")) as $survivors |
{what: "mutants", caught: ($caught | length), missed: ($survivors | length),
    unexplained: (map(select(.verdict == "SURVIVED")) | length),
    kernels: (group_by(.kernel) |
        map({kernel: .[0].kernel, caught: map(select(.verdict == "CAUGHT")) | length, of: length})),
    stale: (if $all == 1 then $keys - ($survivors | map(place)) else [] end),
    survivors: ($survivors | map({kernel} + place + {why})), mutants: map({kernel} + place + {by})}
