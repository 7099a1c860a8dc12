# The lines of the cheats as their summary. $device; $ways: lines "WAY:what it is".
def count($verdict): map(select(.verdict == $verdict)) | length;
. as $cheats |
{what: "cheats", device: $device, caught: count("CAUGHT"), missed: count("MISSED"), not_run: count("NOT-RUN"),
    cheats: ., ways: ($ways | split("\n") | map(split(":") as $way | {way: $way[0], is: $way[1]} +
        ($cheats | map(select(.way == $way[0])) | {tried: (length - count("NOT-RUN")), caught: count("CAUGHT")})))}
