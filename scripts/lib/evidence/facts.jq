# What the index says of an entry's files, whose values are the input (jq -s): every commit that they name, and how many
# rows they have about a kernel. $kinds: {name: "hand" or "library"}. $files: a line each.
include "evidence/row";
{entry: $entry, files: ($files | split("\n")),
    commits: ([.. | objects | .git | if type == "array" then .[] else . end | values | split(" ")[]] | unique),
    rows: ([.[] | rows | select(is_about($kinds))] | length)}
