# A result of scripts/ncu_profile.sh as a heading and a table of its gates.
include "report/numbers";
(.problem | if . then " at \(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)"
    else "" end) as $problem |
(.config | to_entries | map("\(.key)=\(.value)") | join(" ") | @html) as $config |
"<h3>\(.kernel | @html)\($problem): \($config)</h3>" +
"<table><tr><th>gate</th><th>measured</th><th>rule</th><th>verdict</th></tr>",
(.gates[] | "<tr><td>\(.gate | @html)</td><td>\(.measured | hundredths) \(.unit)</td><td>\(.rule | @html)</td>" +
    "<td class=\"\(.verdict)\">\(.verdict)\(if .reason then ": \(.reason)" else "" end)</td></tr>"),
"</table>"
