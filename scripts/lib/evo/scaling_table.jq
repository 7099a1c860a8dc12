# Lines of sweep_scaling.sh (jq -s) as a table. A row is compared with one GPU of the same machine and commit,
# on the same candidates.
include "numbers";
. as $all |
"| GPUs | of a machine with | kernel | candidates | seconds | candidates per second | of N times one GPU |",
"|---|---|---|---|---|---|---|",
(.[] | . as $row |
    ([$all[] | select(.gpus == 1 and ([.tried, .machine, .git] == ($row | [.tried, .machine, .git])))][0]) as $one |
    "| \(.gpus) | \(.machine.gpus) x \(.gpu), \(.machine.cores) cores | \(.kernel) | \(.candidates) | \(.seconds) |"
    + " \(.per_second) |"
    + " \(if $one then .per_second / $one.per_second / .gpus else null end | hundredths) |")
