# Values of the folder's files, slurped: where, with what and when they were measured, as a list of facts.
def all_of(f): [.. | objects | f // empty | strings] | unique;
def fact($name; $values): $values | map(select(. != "")) |
    if . == [] then empty else "<dt>\($name)</dt><dd>\(map(@html) | join("; "))</dd>" end;
# Of texts, those that do not begin a longer one.
def longest: . as $all | map(select(. as $t | any($all[]; . != $t and startswith($t)) | not));
def gigabytes: . / 1e9 | round;
([.. | objects | select(has("sm_count") and has("name"))] | unique_by(.name)) as $devices |
([.. | objects | select(has("git") and has("time")) | select((.git | type) == "string") | {git, time}] |
    group_by(.git) | map({git: .[0].git, time: (map(.time) | max)}) | sort_by(.time) | reverse | map(.git))
    as $commits |
all_of(.time) as $times |
(all_of(.torch) | map(if test("^[0-9]") then "torch \(.)" else . end)) as $torch |
"<dl class=\"facts\">",
fact("GPU"; $devices | map("\(.name), \(.arch), \(.sm_count) SMs, up to \(.clock_mhz_max // "?") MHz" +
    "\(if .memory_bytes then ", \(.memory_bytes | gigabytes) GB" else "" end)" +
    "\(if .memory_gbytes_per_s then " at \(.memory_gbytes_per_s | round) GB/s" else "" end)")),
fact("Driver"; all_of(.driver)),
fact("Compilers"; all_of(.compiler)),
fact("Libraries"; $torch + all_of(.vs_compiler) | longest),
fact("Commit"; if $commits == [] then [] else
    [$commits[0] + if $commits[1] then " (the newest; also \($commits[1:] | join(", ")))" else "" end] end),
fact("Measured"; if $times == [] then [] else
    [if $times[0][:10] == $times[-1][:10] then $times[0][:10] else "\($times[0][:10]) to \($times[-1][:10])" end] end),
"</dl>"
