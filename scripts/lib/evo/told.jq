# A line of sweeps.jsonl. $a, $b: when the search began and ended, in seconds.
def hundredths: . * 100 | round / 100;
{kernel: $kernel, group: $group, strategy: $strategy, seed: $seed, pool: $pool, options: $options, budget: $budget,
    candidates: $candidates, measured: $measured, compiled_cold: $cold,
    status: ($tried | map(select(.status != "pending")) | group_by(.status) | map({(.[0].status): length}) | add),
    seconds: ($b - $a | hundredths), per_second: ($candidates / ([$b - $a, 0.01] | max) | hundredths),
    lost: ($lost | split("\n") | map(select(. != ""))), git: $git, time: $time}
