# The rows of pairs for people: per kernel, pace and peer the mean and the least, pairs below 1, and what has no ratio.
include "report/numbers";
include "pairs/name";
group_by([.kernel, .pace, .vs])[] | map(select(.ratio)) as $timed | map(select(.ratio == null)) as $rest |
($timed | map(.ratio)) as $ratios |
"\(.[0].kernel) over \([.[].vs_version | values][0] // .[0].vs), \(.[0].pace): " + (if $ratios == [] then "no pair"
    else "geometric mean \($ratios | mean | thousandths), least \($ratios | min | thousandths), " +
        "\($ratios | map(select(. < 1)) | length) below 1, \($ratios | length) pairs" end),
($timed | map(select(.ratio < 1)) | sort_by(.ratio)[] |
    "  \(.ratio | thousandths) (\(.ci95 | map(thousandths | tostring) | join(" to "))) \(name)"),
($rest | group_by([.status, .reason])[] | "  \(.[0].status), \(length) pairs: \(.[0].reason // "no reason")" +
    if .[0].status | IN("not_run", "infeasible") then "" else " (\(map(name) | join("; ")))" end)
