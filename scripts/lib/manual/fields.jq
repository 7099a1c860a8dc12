# The schema of a record as rows "FIELD<tab>TYPE", in the order of the schema. vs.KEY that repeats a KEY of the record
# is one row.
def words: map(if . == null then "null" else tojson end) | join(", ");
def type_of: if has("const") then [.const] | words elif has("enum") then .enum | words
    elif has("type") then [.type] | flatten | join(" or ") else "any" end;
def kinds: if .anyOf then .anyOf[] else . end;
def kind: [kinds | type_of] | unique | join(" or ");
def fields($at): kinds | ((.properties // {}) | to_entries[] | "\($at)\(.key)" as $name |
    [$name, (.value | kind)], (.value | fields("\($name)."), (kinds | .items // empty | fields("\($name)[].")))) ;
(.properties | keys) as $top |
reduce fields("") as [$name, $type] ([]; if any(.[]; .[0] == $name) then . else . + [[$name, $type]] end) |
.[] | select(.[0] | split(".") | .[0] != "vs" or length < 3 or (.[1] | sub("\\[\\]$"; "") | IN($top[]) | not)) | @tsv
