# Cases of wrong kernels as their summary. $gate: 1 when the gate was tried. Without it nothing counts as missed.
{what: "wrong", device: "emu", kernels: length, ordinary: map(select(.ordinary)) | length,
    gate: (if $gate == 1 then map(select(.gate)) | length else null end),
    missed: (if $gate == 1 then map(select(.gate | not) | .name) else [] end), cases: sort_by(.name)}
