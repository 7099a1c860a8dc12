# Cases of wrong kernels as their summary. $gate: 1 when the gate was tried. Without it nothing counts as missed.
def caught(f): if any(.[]; f == null) then null else map(select(f)) | length end;
{what: "wrong", device: $device, gpu: $gpu, kernels: length, ordinary: caught(.ordinary),
    gate: (if $gate == 1 then map(select(.gate)) | length else null end),
    missed: (if $gate == 1 then map(select(.gate | not) | .name) else [] end), seconds: (map(.seconds) | max),
    cases: (map(del(.seconds)) | sort_by(.name))}
