# Points with their bounds (with jq -s) as a summary: how many lie below their bound, and how well it ranks tiles.
def ranks: . as $all | to_entries | sort_by(.value) | to_entries | map({key: (.value.key | tostring), value: .key}) |
    from_entries as $rank | [range($all | length) | $rank[tostring]];
# Spearman's rank correlation.
def correlation($a; $b): ($a | ranks) as $x | ($b | ranks) as $y | ($a | length) as $n |
    if $n < 3 then null else 1 - 6 * ([range($n) | ($x[.] - $y[.]) * ($x[.] - $y[.])] | add) / ($n * ($n * $n - 1)) end;
# How much slower the best of the 8 tiles with the least bound is than the best of all.
def regret: (map(.us) | min) as $best | (sort_by(.bound_us)[:8] | map(.us) | min) / $best - 1;
def median: sort | .[length / 2 | floor];

map(select(.bound_us)) as $known |
{points: length, with_bound: ($known | length),
    below_bound: ($known | map(select(.percent_of_bound > 100))),
    percent_of_bound: ($known | map(.percent_of_bound) |
        if length == 0 then null else {median: median, largest: max} end),
    spaces: ($known | group_by([.kernel, .problem]) | map(select(length >= 12) | unique_by(.options) |
        {kernel: .[0].kernel, problem: .[0].problem, tiles: length,
            spearman: correlation(map(.bound_us); map(.us)), regret_of_best_8: regret}))}
