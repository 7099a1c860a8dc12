# The cases as their summary. $dtype: element type; $note: what did not run; $sanitize, $race: 1 for these modes.
def counts: {passed: map(select(.verdict == "passed")) | length, failed: map(select(.verdict == "failed")) | length,
    skipped: map(select(.verdict == "skipped")) | length, not_run: map(select(.verdict == "not_run")) | length};
def made_of: {git: (map(.git // empty) | unique), source_sha256: (map(.source_sha256 // empty) | unique)};
def last_line: .text | split("\n") | map(select(length > 0)) | last // "";
(if $race == 0 then {} else {what: "race"} end) + {device: $device, dtype: $dtype, note: $note, draws: $draws,
    seed: $seed,
    kernels: (group_by(.kernel) | map({kernel: .[0].kernel} + counts + if $sanitize == 0 then {} else made_of end))} +
if $sanitize == 0 then {} else {what: "sanitize", gpu: $gpu, problems: (map(.args) | unique | length),
    tools: (group_by(.tool) | map({tool: .[0].tool} + counts)),
    not_passed: map(select(.verdict == "failed" or .verdict == "skipped") |
        {kernel, tool, args, verdict, code, why: last_line})} end
