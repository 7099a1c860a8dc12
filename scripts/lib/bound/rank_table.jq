# bound_rank.json as Markdown.
include "numbers";
def percent: . * 100 | round | tostring + " %";
"The estimate, fitted to \(.fitted) configurations and judged on \(.judged) others: " +
    "off by \(.error.median | percent) (median), \(.error.p90 | percent) (nine in ten).", "",
"| kernel | judged | off by, median | off by, nine in ten |", "|---|---|---|---|",
(.kernels[] | "| `\(.kernel)` | \(.points) | \(.median | percent) | \(.p90 | percent) |"), "",
"Of a swept space: rank correlation with the measured time, and how much slower the best of the first eight is.", "",
"| kernel | problem | tiles | bound: correlation | best of 8 | skipped | estimate: correlation | best of 8 | skipped |",
"|---|---|---|---|---|---|---|---|---|",
(.spaces[] | "| `\(.kernel)` | \(.problem) | \(.tiles) | \(.bound.spearman | hundredths) | " +
    "+\(.bound.regret_of_best_8 | percent) | \(.prune_bound.skipped) | \(.estimate.spearman | hundredths) | " +
    "+\(.estimate.regret_of_best_8 | percent) | \(.prune_estimate.skipped), winner " +
    "+\(.prune_estimate.slower_winner | percent) |")
