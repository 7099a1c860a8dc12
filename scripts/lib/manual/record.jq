# The fields of a record as a table per top-level key. Input: rows "FIELD<tab>TYPE"; $words: record.tsv.
def table_of($text): $text | split("\n") | map(select(length > 0) | split("\t"));
def code: "`\(.)`";
(table_of($words) | map({(.[0]): .[1]}) | add) as $says |
table_of(.) | (map(.[0]) - ($says | keys)) as $missing |
if $missing != [] then
    error("no words for \($missing | join(", ")): add a line per field to scripts/lib/manual/record.tsv") else . end |
def shown: map("| \(.[0] | code) | \(.[1]) | \($says[.[0]]) |");
"# The record, field by field", "",
"`--json FILE` writes one JSON object per run. `--json -` prints it alone on stdout.",
"Its JSON Schema is `tests/fa_bench.result.schema.json`. Keys may be added, never renamed.",
"Times are in microseconds where the name ends in `_us`. A field without a value is `null`.", "",
"This page is made by `scripts/house/manual.sh` from the schema.",
(group_by(.[0] | split(".")[0]) as $groups |
    (map(.[0] | split(".")[0]) | reduce .[] as $k ([]; if index([$k]) then . else . + [$k] end)) as $order |
    ($groups | map({(.[0][0] | split(".")[0]): .}) | add) as $by |
    ($order | map(select($by[.] | length == 1))) as $alone |
    "", "## The run", "", "| field | type | what it is |", "|---|---|---|", ($alone | map($by[.][0]) | shown[]),
    ($order[] | select($by[.] | length > 1) | . as $key | $by[$key] |
        "", "## \($key)", "", "\($says[$key][:1] | ascii_upcase)\($says[$key][1:]).", "",
        "| field | type | what it is |", "|---|---|---|",
        (map(select(.[0] != $key)) | shown[])))
