# A row for people.
include "peers/name";
def us: if . == null then "-" else . * 100 | round / 100 end;
"\(words)  \(.variant // .kernel) \(.us | us) us  " +
"best peer \(.best_peer // "-") \(.peers[.best_peer // ""] | us) us  ratio \(.ratio | us)" +
if .paired_ratio then ", paired \(.paired_ratio | us)" else "" end +
(if .status == "pass" then .unpaired // {} else {} end | to_entries |
    if . == [] then "" else "  not paired: \(map(.key) | join(", ")): \(.[0].value)" end) +
if .status != "pass" then "  \(.status): \(.reason)" else "" end
