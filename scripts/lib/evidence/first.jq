# The record of the tile --vs the baseline as the summary of the first rungs. $warm, $cold: wall seconds.
{what: ("canonical problem (2,8,512,64): the shared-memory tile against the baseline, " +
    "wall time of a whole run of it with a warm cache, its cold compile"),
    kernel, vs: .vs.kernel, ratio: .vs.ratio, ci95: .vs.ratio_ci95, run_wall_s: $warm, cold_compile_s: $cold, device}
