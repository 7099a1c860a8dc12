# A leaderboard's lines (jq -s) and its sweep as a line of scripts/evidence/sweep_scaling.sh. `tried` is a digest of the
# candidates; `median_s` the stages of those that ran.
def median: sort | if length == 0 then null else .[length / 2 | floor] end;
(map(.stage_s // {} | to_entries[]) | group_by(.key) | map({(.[0].key): (map(.value) | median)}) | add) as $stages |
{gpu: $gpu, gpus: $gpus, machine: {gpus: $present, cores: $cores}} + $sweep[-1] +
{tried: $tried, median_s: (($stages // {}) + {compile_cold: (map(select(.cache_hit == false).compile_s) | median)})}
