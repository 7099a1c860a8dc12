# The workers' lines as they come (jq -nR), each in four: what became of it, the candidate, the best so far ($best
# before the first), the line itself.
foreach (inputs | fromjson? // {knobs: "", lost: "a torn line of a worker"}) as $line ({best: $best};
    if $line.status == "pass" and $line.p50_us != null and (.best == null or $line.p50_us < .best.p50_us) then
        .best = ($line | {p50_us, knobs, said: "\(.p50_us * 100 | round / 100) us \(.knobs)"}) else . end;
    .best as $now | $line |
    (if .lost then "lost \(.lost)" elif .known then "known" elif .status == "pruned" then "pruned"
     elif .cache_hit == false then "cold" else "warm" end),
    {key, knobs, status: (.status // "not_run"), p50_us, loosened, source_sha256}, $now, .)
