# The lines of the cheats as their summary. $device; $asked: lines "NAME NEEDS WAY ..." of all that were to be tried;
# $ways: lines "WAY:what it is"; $sha256: of the files that they are made of.
def count($verdict): map(select(.verdict == $verdict)) | length;
map(.name) as $tried |
[$asked | split("\n")[] | select(. != "") | split(" ") | select(.[0] | IN($tried[]) | not) |
    {name: .[0], way: .[2], verdict: "NOT-RUN", gate: "not reached"}] as $not_reached |
(. + $not_reached) as $cheats | $cheats |
{what: "cheats", device: $device, sha256: $sha256, caught: count("CAUGHT"), missed: count("MISSED"),
    not_run: count("NOT-RUN"), not_reached: ($not_reached | map(.name)), cheats: .,
    ways: ($ways | split("\n") | map(split(":") as $way | {way: $way[0], is: $way[1]} +
        ($cheats | map(select(.way == $way[0])) | {tried: (length - count("NOT-RUN")), caught: count("CAUGHT")})))}
