# A record as a case. $text: what the process said; $code: its exit code, 9 for what a sanitizer found, 137 where it was
# ended; $key: what the machine code is known by. Where a process had several runs, a record knows its own code.
def codes: {pass: 0, wrong: 1, usage: 2, infeasible: 3, not_run: 4, timeout: 5, error: 6};
(if $sanitize == 1 and ($code == 9 or $code == 137) then $code else codes[.status // ""] // $code end) as $code
# What a tool finds in the kernels of a library, and none of ours in the report: not ours to judge.
| ($code == 9 and $library and $tool != "" and ($text | test(" in [a-z_0-9]+[.]cuh?:") | not)) as $theirs
| (if $code == 0 and .status == "pass" then "passed"
    elif $theirs or $code == 4 and $library then "skipped"
    # What the emulator cannot run, or has no compiler for; the GPU's cases have shown that the kernel runs.
    elif $code == 4 and ($tool | IN("race", "address", "undefined")) and $gpu == 1 then "skipped"
    # A problem with a time of its own is large for the emulator; a deadlock is found without a clock.
    elif $code == 5 and $own and ($args | test("--timeout")) then "skipped"
    # A library's plans are for one layout; a file of one's own may serve less than the contract.
    elif $code == 3 and ($library or $own or $tool != "" or
        ($args | test("--misalign|--lse|--strides far|--strides odd"))) then "skipped"
    else "failed" end) as $verdict
| (if .status and ($tool == "" or .status != "pass" and $code != 9) then "\(.status): \(.reason // "")"
    else ($text[-1500:] | sub("\n+$"; "")) + (if $theirs then
        "\n\nthe tool finds something in the library, not in our kernels" +
            ([$text | scan("at ([A-Za-z_0-9]+)")][0] // [] | map(": " + .) | add // "") else "" end)
    end) as $said
| {kernel: $kernel, tool: $tool, args: $args, verdict: $verdict, code: $code,
    seconds: (.provenance.stage_s // {} | add), text: $said,
    gpu: $device, variant, arch: .ptxas.arch, problem, config,
    code_sha256: (if $key | test("[.]") then $key else .provenance.code_sha256 end),
    source_sha256: .provenance.source_sha256, git: .provenance.git}
