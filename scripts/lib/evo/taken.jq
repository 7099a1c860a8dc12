# A worker's line in three: what became of it, the candidate, the best so far ($best before).
(if .lost then "lost \(.lost)" elif .known then "known" elif .status == "pruned" then "pruned"
 elif .cache_hit == false then "cold" else "warm" end),
{key, knobs, status: (.status // "not_run"), p50_us, loosened, source_sha256},
(if .status == "pass" and .p50_us != null and ($best == null or .p50_us < $best.p50_us) then {p50_us, knobs}
    else $best end)
