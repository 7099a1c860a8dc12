# A record as a case. $text: what the process said; $key: what the machine code is known by.
def said: .status and ($tool == "" or (.status != "pass" and $code != 9));
{kernel: $kernel, tool: $tool, args: $args, verdict: $verdict, code: $code, seconds: (.provenance.stage_s // {} | add),
    text: (if said then "\(.status): \(.reason // "")" else $text end)} +
{gpu: $gpu, variant, arch: .ptxas.arch, problem, config,
    code_sha256: (if $key | test("[.]") then $key else .provenance.code_sha256 end),
    source_sha256: .provenance.source_sha256, git: .provenance.git}
