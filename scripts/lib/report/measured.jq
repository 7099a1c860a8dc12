# Lines of evidence_current.sh --rows as the sentence above a table, of one line or two. $commits: those measured.
def stale: map(select(.current | not));
(group_by(.kernel) | map(select(stale != []) | "`\(.[0].kernel)` (\(stale | length) of \(length) rows)") | join(", "))
    as $changed |
"Measured at commit \($commits)" + if $changed == "" then "." else ";" end,
(if $changed == "" then empty else "machine code changed since, so to be measured again: \($changed)." end), ""
