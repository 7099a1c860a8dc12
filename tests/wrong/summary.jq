# Cases of wrong kernels as their summary. $names: those that were to be tried, a line each; $gate: 1 when the gate was.
# Without it nothing counts as missed.
def caught(f): if length == 0 or any(.[]; f == null) then null else map(select(f)) | length end;
{what: "wrong", device: $device, gpu: $gpu, kernels: length, ordinary: caught(.ordinary),
    gate: (if $gate == 1 then map(select(.gate)) | length else null end),
    missed: (if $gate == 1 then map(select(.gate | not) | .name) else [] end),
    not_reached: (($names | split("\n") | map(select(. != ""))) - map(.name)), seconds: $seconds,
    cases: sort_by(.name)}
