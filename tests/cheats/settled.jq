# The cheats of an earlier summary that need no second run: those that were asked for, tried on the same device and from
# the same files. $asked: lines that begin with a name.
($asked | split("\n") | map(split(" ")[0])) as $names |
select(.device == $device and .sha256 == $sha256) | .cheats[] |
select(.verdict != "NOT-RUN" and (.name | IN($names[])))
