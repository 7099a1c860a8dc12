# Rows (with jq -s) as files of a FlashInfer Trace folder, a line each: PATH, a tab, the JSON. Lines of one path belong
# to one file. A definition is attention with fixed heads, dim and mask; batch and lengths are the workload's.
# $sources: [the files of kernels/, include/ and the launchers, by name].
include "export/kernel";

def mask: if .causal then "causal" else "full" end;
def name: "attention_\(.dtype)_h\(.heads)_kv\(.kv_heads)_d\(.dim)_\(mask)";
def uuid: "\(.batch)x\(.seq_q)x\(.seq_kv)";
def line($path; $value): "\($path)\t\($value | tojson)";

def reference($p): [
    "import torch",
    "",
    "",
    "def run(q, k, v):",
    "    group = q.shape[1] // k.shape[1]",
    "    k, v = (x.double().repeat_interleave(group, dim=1) for x in (k, v))",
    "    scores = q.double() @ k.transpose(2, 3) * \($p.scale)",
    if $p.causal then
        "    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)",
        "    scores = scores.masked_fill(~mask.tril(k.shape[2] - q.shape[2]), float(\"-inf\"))"
    else empty end,
    "    return (torch.softmax(scores, dim=-1).nan_to_num(0.0) @ v).to(q.dtype)"] | join("\n") + "\n";

def definition: . as $p |
    {float: (if .dtype == "bf16" then "bfloat16" else "float16" end)} as $t |
    def tensor($shape; $about): {shape: $shape, dtype: $t.float, description: $about};
    {name: name, op_type: "attention", tags: ["source:fa_bench"],
     description: ("softmax(scale * Q K^T + mask) V; the causal mask is aligned bottom-right, " +
        "a row that sees no key is 0"),
     axes: {batch: {type: "var"}, seq_q: {type: "var"}, seq_kv: {type: "var"}, heads: {type: "const", value: .heads},
        kv_heads: {type: "const", value: .kv_heads}, dim: {type: "const", value: .dim}},
     constraints: ["heads % kv_heads == 0"],
     inputs: {q: tensor(["batch", "heads", "seq_q", "dim"]; "queries"),
        k: tensor(["batch", "kv_heads", "seq_kv", "dim"]; "keys"),
        v: tensor(["batch", "kv_heads", "seq_kv", "dim"]; "values")},
     outputs: {o: tensor(["batch", "heads", "seq_q", "dim"]; "output")},
     reference: reference($p)};

def workload: {uuid: uuid, axes: {batch, seq_q, seq_kv}, inputs: {q: {type: "random"}, k: {type: "random"},
    v: {type: "random"}}};

{pass: "PASSED", wrong: "INCORRECT_NUMERICAL", infeasible: "COMPILE_ERROR", compile_error: "COMPILE_ERROR",
 timeout: "TIMEOUT", error: "RUNTIME_ERROR"} as $statuses |
def evaluation: $statuses[.status] as $status | {status: $status,
    environment: {hardware: .gpu, libs: .libraries}, timestamp: (.time // "unknown"),
    log: (.reason // (if .vs then "reference: \(.vs)" else "no reference was timed" end)),
    correctness: (if .status == "pass" or .status == "wrong" then
        {max_relative_error: (.errors.row_rel_l2 // 0), max_absolute_error: (.errors.max_abs // 0),
         extra: {max_relative_error: "largest relative L2 error of a row"}} else null end),
    performance: (if .status == "pass" then {latency_ms: (.p50_us / 1000),
        reference_latency_ms: ((.vs_p50_us // 0) / 1000), speedup_factor: (.ratio // 0)} else null end)};

# A kernel with its includes in their places, its tile as macros and the launcher. One that uses tensor maps has no
# solution.
def solution_file: . as $row | $sources[0]["\(.kernel).cu"] as $kernel | select(exportable($sources[0])) |
    {name: solution, definition: (.problem | name), author: "fa_bench",
     description: "fa_bench \(.git // ""), measured on \(.gpu)",
     spec: {language: "cuda", target_hardware: [.gpu], entry_point: "main.cu::run", dependencies: [],
        destination_passing_style: true, binding: "tvm-ffi"},
     sources: ([{path: "main.cu", content: (($row | macros) + $sources[0]["flashinfer_main.cu"])},
        {path: "kernel.cuh", content: ($kernel | inlined($sources[0]; []).text)},
        {path: "launch.cuh", content: $sources[0]["launch.cuh"]}])};

map(select(.problem and .errors and .problem.dtype)) |
(map(.problem | .path = "attention/\(name)") | unique_by(.path)[] |
    line("definitions/\(.path).json"; definition)),
(map(.problem) | unique_by([name, uuid])[] |
    line("workloads/attention/\(name).jsonl";
        {definition: name, workload: workload, solution: null, evaluation: null})),
(unique_by([.kernel, .knobs, .problem | tojson])[] | solution_file |
    line("solutions/fa_bench/attention/\(.definition)/\(.name).json"; .)),
(.[] | select($statuses[.status] and (.status != "pass" or .p50_us)) |
    line("traces/fa_bench/attention/\(.problem | name).jsonl"; {definition: (.problem | name),
        workload: (.problem | workload), solution: solution, evaluation: evaluation}))
