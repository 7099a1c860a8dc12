# Measured points of an evidence file, each with the options that give its bound (run with -n). $kinds: {name: kind}.
# $file: its path. A point is a timed row of a kernel of ours: p50 in us, the clock where the row has it, and the hash
# of the machine code that was timed. Of a pair the time alone, which is the one that the clock was measured in.
include "evidence";
include "typed";

# "m=64,n=128" as an object; the sweeps' rows have it instead of a config.
def knobs: if type == "string" then split(",") | map(split("=") | {(.[0]): .[1]}) | add else . end;

inputs | rows | select($kinds[.variant // .kernel] == "hand" and (.status // "pass") == "pass") |
(.timing.p50_us // .solo_us // .p50_us // .us) as $us | select($us | type == "number") |
(.config // (.knobs | knobs)) as $config | select($config and (.arch // .ptxas.arch // "sm_90a") == "sm_90a") |
shape as $p | (.variant // .kernel) as $kernel |
{file: ($file | ltrimstr("evidence/h200/")), kernel: $kernel, us: $us,
    mhz: (.timing.sm_clock_mhz.p50 // (.sm_clock_mhz | numbers) // null),
    code: (.code_sha256 // .provenance.code_sha256 // null),
    measured_at: ((.git // .provenance.git // "") | rtrimstr("-dirty")),
    problem: ($p | "\(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)\(typed)"),
    options: (["--kernel \($kernel) --arch sm_90a --batch \($p.batch) --heads \($p.heads) --seq \($p.seq_q)",
        "--kv-heads \($p.kv_heads // $p.heads) --seq-kv \($p.seq_kv // $p.seq_q) --dim \($p.dim)",
        ($p | select(.causal) | "--causal"), ($p | typed_options),
        ($config | to_entries[] | select(.value != null) | "--\(.key) \(.value)")] | join(" "))}
