# The entry of the leaderboard for the line with $key: its confirmed times ($full) and what it has beaten ($vs).
map(select(.key == $key)) | last | . + {explored_p50_us: .p50_us} |
del(.key, .code, .reason, .status, .loosened, .stage_s, .cache_hit, .compile_s) +
($full[0].timing | {p50_us, p90_us, p50_ci95_us, method, sm_clock_mhz: .sm_clock_mhz.p50}) +
{seeds: $full[0].check.seeds, time: $full[0].provenance.time} +
{over: ($vs[0].vs | if . and .accepted then {kernel, config, ratio, ratio_ci95} else null end)}
