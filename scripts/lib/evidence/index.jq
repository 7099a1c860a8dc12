# README.md of an evidence folder ($dir), from a line for each entry (-s): {entry, files, commits, rows}.
# $entries: files.json. $currency: [{file, looked_at, current}].
def commits: .commits |
    if . == [] then "-" elif length > 4 then "\(length) commits" else map("`\(.)`") | join(" ") end;
($currency[0] | map({(.file): .}) | add // {}) as $by_file |
def current: .rows as $rows | (.files | map($by_file[.] // {looked_at: 0, current: 0})) as $seen |
    ($seen | map(.looked_at) | add) as $looked_at | ($seen | map(.current) | add) as $current |
    if $rows == 0 then "-" elif $looked_at == $rows then "\($current) of \($rows)"
    else "\($current) of \($looked_at) looked at, \($rows) in all" end;
"# Evidence of \($dir)", "",
"Written by `evidence_index.sh` (`make report`). A row is current while the machine code of its kernel and",
"configuration is what compiles today (`evidence_current.sh`). A row that was made with other machine code, or",
"does not say with which, is not current. A row of a library counts by the name of the library. Of a long file only",
"some rows are looked at, evenly spread.", "",
"| file | shows | made by | commit | current rows |", "|---|---|---|---|---|",
(.[] | $entries[0][.entry] as $entry |
    "| `\($entry.file)` | \($entry.shows)\(if (.files | length) > 1 then "; \(.files | length) files" else "" end) | " +
    "\(if $entry.makes == "by hand" then "by hand" else "`\($entry.makes)`" end) | \(commits) | \(current) |")
