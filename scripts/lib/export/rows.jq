# One row for each record of fa_bench or line of a leaderboard (with jq -s), of $kernels (all when empty), of $status
# and $group where these are not empty. Of lines with the same key the last counts.
include "typed";

def knobs_of($text): $text | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber? // .)}) | add;
def milliseconds: if . == null then null else . * 1000 end;
def mask: if .causal then "causal" else "full" end;
def problem_text: "\(.batch),\(.heads),\(.kv_heads),\(.seq_q),\(.seq_kv),\(.dim),\(mask)\(typed)";

def row_of_record: {key: null, kernel: (.variant // .kernel), knobs: .config, problem, status, reason,
    gpu: (if .device.backend == "emu" then "CPU emulator" else .device.name end), arch: (.ptxas.arch // .device.arch),
    p50_us: .timing.p50_us, p90_us: .timing.p90_us, tflops: .throughput.tflops,
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes,
    vs: .vs.kernel, ratio: .vs.ratio, ratio_ci95: .vs.ratio_ci95, vs_p50_us: .vs.other_p50_us,
    errors: ([.check.references[]?] | {max_abs: (map(.max_abs_err // empty) | max),
        row_rel_l2: (map(.worst_row_rel_l2 // empty) | max)}),
    libraries: {driver: (.provenance.driver // "none"), compiler: (.provenance.compiler // "none")},
    stage_s: .provenance.stage_s, git: .provenance.git, code_sha256: .provenance.code_sha256, time: .provenance.time};

def row_of_line: {key, kernel, knobs: knobs_of(.knobs), problem, status, reason, gpu, arch: (.group | split("|")[1]),
    group, p50_us, p90_us, tflops: (if .p50_us and .problem.flop then .problem.flop / .p50_us / 1e6 else null end),
    registers, smem_bytes, spill_bytes, vs: null, ratio: null, ratio_ci95: null, stage_s, git, code_sha256, time};

map(if .schema == "fa_bench.result/1" then row_of_record
    elif (.key | type == "string") and (.knobs | type == "string") then row_of_line else empty end) |
[to_entries[] | .value + {order: .key}] |
(map(select(.key == null)) + (map(select(.key)) | group_by(.key) | map(last))) | sort_by(.order) | .[] |
select($status == "" or .status == $status) |
select(($kernels | length) == 0 or (.kernel as $k | $kernels | index($k) != null)) |
.group = (.group // "\(.gpu)|\(.arch)|\(.problem | if . then problem_text else "" end)") |
select($group == "" or (.group | contains($group))) |
.problem_text = (.problem | if . then problem_text else null end) |
.times_ms = {compile: (.stage_s.compile | milliseconds), benchmark: (.stage_s.timing | milliseconds),
    validation: (if .stage_s then (.stage_s.check // 0) + (.stage_s.recheck // 0) | milliseconds else null end)} |
del(.order, .stage_s)
