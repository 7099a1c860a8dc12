# Records in the formats of other tools. Every format but `rows` takes the lines of `rows` (with jq -s). Formats of
# several files print a line a file: its path, a tab, its contents as JSON, text as a string.
# $sources: [the files of kernels/, include/ and the launchers, by name].
include "record";

def ms: if . then . / 1000 else null end;
# Knobs as text, "m=64,n=128"; null for none.
def tile: if . then del(.acc) | to_entries | map(select(.key != "maxreg" or .value > 0) | "\(.key)=\(.value)") |
    join(",") else null end;
# A kernel that breaks a rule of CUDA gives no result that could be wrong.
def ended: if .status == "wrong" and .fault then "error" else .status end;
def file($path; $value): "\($path)\t\($value | tojson)";

# The name of a row's kernel with its tile.
def solution: [.kernel] + (.knobs // {} | to_entries | map("\(.key)\(.value)")) | join("_");

# The files of a command's --definition and --workload, separated by a tab; null without both.
def published_key:
    [(capture("--definition[ =](?<f>[^ ]+)").f // null), (capture("--workload[ =](?<f>[^ ]+)").f // null)] |
    if all then join("\t") else null end;
# Of records (with jq -s), each once.
def published_keys: [.[].provenance.command? // empty | published_key // empty] | unique[];

# Its tile, head dimension, mask and scale.
def macros: (.knobs | {FA_M: .m, FA_N: .n, FA_WARPS: .warps, FA_VEC: .vec, FA_STAGES: .stages, FA_SWIZZLE: .swizzle,
        FA_SPLITS: .splits, FA_MAXREG: .maxreg, FA_ACC_FP16: (if .acc == "fp16" then 1 else 0 end)}) +
    (.problem | {FA_DIM: .dim, FA_CAUSAL: (if .causal then 1 else 0 end), FA_EXPORT_SCALE: "\(.scale)f"}) |
    to_entries | map("#define \(.key) \(.value // 0)\n") | add;

# Right, ours, without tensor maps, which need a host that encodes them, and without CUTLASS's headers.
def exportable: ($sources[0]["\(.kernel).cu"] // "") as $kernel | .status == "pass" and .knobs != null and
    $kernel != "" and ($kernel | test("\\.tma_|(?m:^#include <cut(e|lass)/)") | not);

# A source with what it includes in its place: {seen, text}.
def inlined($seen): reduce split("\n")[] as $line ({seen: $seen, text: []};
    ($line | capture("^#include \"(?<name>[^\"]+)\"").name // null) as $name |
    if $line == "#pragma once" then .
    elif $name == null or $sources[0][$name] == null then .text += [$line]
    elif .seen | index([$name]) then .
    else .seen += [$name] | .seen as $s | ($sources[0][$name] | inlined($s)) as $inner |
        .seen = $inner.seen | .text += [$inner.text | rtrimstr("\n")] end) | .text |= join("\n");

# A kernel, its tile and a launcher as one file.
def one_file($launcher):
    macros + ($sources[0]["\(.kernel).cu"] | inlined([]).text) + "\n" + $sources[0]["launch.cuh"] + "\n" +
    $sources[0][$launcher];

def rule: if .scale == null or (.scale * .scale * .dim - 1 | fabs) < 1e-4 then mask
    else "\(mask)_scale\(.scale | tostring | sub("[.]"; "p"))" end;
# What the task folders of KernelBench and robust-kbench share: their problem in PyTorch. The reference is PyTorch's own
# attention: these benches time it as the baseline.
def task: "attention_b\(.batch)_h\(.heads)_kv\(.kv_heads)_q\(.seq_q)_kv\(.seq_kv)_d\(.dim)_\(rule)";

# Dense attention alone: no option of docs/features.md, no gradients.
def dense: .problem | (.dim_v // .dim) == .dim and (.op // "forward") == "forward" and .kv_dtype != "e4m3" and
    ([.window, .chunk, .softcap, .sinks, .alibi, .bias, .lengths, .page_size, .v_in_k,
        if .mask == "none" then null else .mask end] | any | not);

# The rows of each problem that such a task can hold: FP16, dense and whole.
def problems: map(select(.problem.dtype == "fp16" and dense)) | group_by(.problem | task)[];

# The fastest of each kernel that can be exported, the fastest first.
def fastest: map(select(exportable and .p50_us)) | group_by(.kernel) |
    map(min_by(.p50_us)) | sort_by(.p50_us);

# Lines of a function body: q, k, v to the result.
def attention($p): [
    if $p.kv_heads != $p.heads then
        "k, v = (x.repeat_interleave(\($p.heads / $p.kv_heads), dim=1) for x in (k, v))" else empty end,
    if $p.causal and $p.seq_q != $p.seq_kv then
        "mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])"
    else empty end,
    "return F.scaled_dot_product_attention(q, k, v, scale=\($p.scale)" +
    (if $p.causal | not then "" elif $p.seq_q == $p.seq_kv then ", is_causal=True" else ", attn_mask=mask" end) + ")"];
def indented($spaces): map(" " * $spaces + .);

# A field that a record does not have is empty.
def csv:
    ["kernel", "gpu", "arch", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "dim", "causal", "dtype",
     "m", "n", "warps", "vec", "stages", "swizzle", "acc", "splits", "maxreg", "status", "reason",
     "p50_us", "p90_us", "tflops", "registers", "smem_bytes", "spill_bytes", "vs", "ratio", "ratio_low", "ratio_high",
     "git", "code_sha256", "time", "op"] as $names |
    ($names, (.[] | (.problem // {}) + (.knobs // {}) + . +
        {ratio_low: .ratio_ci95[0]?, ratio_high: .ratio_ci95[1]?} +
        (.problem // {} | if fp8_cache then {dtype: "\(.dtype)/e4m3"} else {} end) | [.[$names[]]])) | @csv;

# A FlashInfer Trace folder. Lines of one path belong to one file. A definition is attention with fixed heads, dim and
# mask; batch and lengths are the workload's. A record of --definition and --workload keeps these: row.published.
def flashinfer:
    def name: "attention_\(.dtype)_h\(.heads)_kv\(.kv_heads)_d\(.dim)_\(rule)";
    def uuid: "\(.batch)x\(.seq_q)x\(.seq_kv)";
    def reference($p): [
        "import torch\n\n",
        "def run(q, k, v):",
        "    group = q.shape[1] // k.shape[1]",
        "    k, v = (x.double().repeat_interleave(group, dim=1) for x in (k, v))",
        "    scores = q.double() @ k.transpose(2, 3) * \($p.scale)",
        if $p.causal then
            "    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)",
            "    scores = scores.masked_fill(~mask.tril(k.shape[2] - q.shape[2]), float(\"-inf\"))"
        else empty end,
        "    return (torch.softmax(scores, dim=-1).nan_to_num(0.0) @ v).to(q.dtype)"] | join("\n") + "\n";

    def definition: . as $p | (if .dtype == "bf16" then "bfloat16" else "float16" end) as $float |
        def tensor($shape; $about): {shape: $shape, dtype: $float, description: $about};
        {name: name, op_type: "attention", tags: ["source:fa_bench", "scale:\(.scale)"],
         description: "softmax(scale * Q K^T) V\(if .causal then ", causal, bottom-right; without keys 0" else "" end)",
         axes: {batch: {type: "var"}, seq_q: {type: "var"}, seq_kv: {type: "var"},
            heads: {type: "const", value: .heads}, kv_heads: {type: "const", value: .kv_heads},
            dim: {type: "const", value: .dim}},
         constraints: ["heads % kv_heads == 0"],
         inputs: {q: tensor(["batch", "heads", "seq_q", "dim"]; "queries"),
            k: tensor(["batch", "kv_heads", "seq_kv", "dim"]; "keys"),
            v: tensor(["batch", "kv_heads", "seq_kv", "dim"]; "values")},
         outputs: {o: tensor(["batch", "heads", "seq_q", "dim"]; "output")},
         reference: reference($p)};

    def workload: {uuid: uuid, axes: {batch, seq_q, seq_kv}, inputs: {q: {type: "random"}, k: {type: "random"},
        v: {type: "random"}}};

    # What the project that published the workload would have said: the record does.
    def published_tolerance: .said |
        if . == null then "unknown: the record does not say" elif .passed then "passes" else "fails: \(.failure)" end;
    def op: .op_type // "attention"; # SOL-ExecBench's definitions may have none
    {pass: "PASSED", wrong: "INCORRECT_NUMERICAL", infeasible: "COMPILE_ERROR", compile_error: "COMPILE_ERROR",
     timeout: "TIMEOUT", error: "RUNTIME_ERROR"} as $statuses |
    def evaluation: $statuses[ended] as $status | {status: $status,
        environment: {hardware: .gpu, libs: .libraries}, timestamp: (.time // "unknown"),
        log: (.reason // (if .vs then "reference: \(.vs)" else "no reference was timed" end)),
        correctness: (if .status == "pass" or ended == "wrong" then
            {max_relative_error: (.errors.row_rel_l2 // 0), max_absolute_error: (.errors.max_abs // 0),
             extra: ({max_relative_error: "largest relative L2 error of a row"} +
                if .published then {published_tolerance: published_tolerance} else {} end)} else null end),
        performance: (if .status == "pass" then {latency_ms: (.p50_us / 1000),
            reference_latency_ms: ((.vs_p50_us // 0) / 1000), speedup_factor: (.ratio // 0)} else null end)};

    # A kernel with its includes in place, its tile as macros and the launcher. One with tensor maps has no solution.
    def solution_file: . as $row | $sources[0]["\(.kernel).cu"] as $kernel | select(exportable) |
        {name: solution, definition: (.problem | name), author: "fa_bench",
         description: "fa_bench \(.git // ""), measured on \(.gpu)",
         spec: {language: "cuda", target_hardware: [.gpu], entry_point: "main.cu::run", dependencies: [],
            destination_passing_style: true, binding: "tvm-ffi"},
         sources: ([{path: "main.cu", content: (($row | macros) + $sources[0]["flashinfer_main.cu"])},
            {path: "kernel.cuh", content: ($kernel | inlined([]).text)},
            {path: "launch.cuh", content: $sources[0]["launch.cuh"]}])};

    def traced: select($statuses[.status] and (.status != "pass" or .p50_us));
    map(select(.problem and .errors and .problem.dtype)) |
    (map(select(.published)) | . as $all |
        (map(.published.definition) | unique[] | file("definitions/\(op)/\(.name).json"; .)),
        (map(.published) | unique[] | file("workloads/\(.definition | op)/\(.definition.name).jsonl";
            {definition: .definition.name, workload, solution: null, evaluation: null})),
        ($all[] | traced | .published as $p |
            file("traces/fa_bench/\($p.definition | op)/\($p.definition.name).jsonl";
                {definition: $p.definition.name, workload: $p.workload, solution: solution, evaluation: evaluation}))),
    (map(select(.published == null and dense)) |
    (map(.problem | .path = "attention/\(name)") | unique_by(.path)[] |
        file("definitions/\(.path).json"; definition)),
    (map(.problem) | unique_by([name, uuid])[] |
        file("workloads/attention/\(name).jsonl";
            {definition: name, workload: workload, solution: null, evaluation: null})),
    (unique_by([.kernel, .knobs, .problem | tojson])[] | solution_file |
        file("solutions/fa_bench/attention/\(.definition)/\(.name).json"; .)),
    (.[] | traced | file("traces/fa_bench/attention/\(.problem | name).jsonl"; {definition: (.problem | name),
        workload: (.problem | workload), solution: solution, evaluation: evaluation})));

# Rows of one kernel and one group as a cache file of Kernel Tuner; times in milliseconds. Without a result there is no
# file. Simulation ends where it meets a point that the file lacks: those not run are InvalidConfig and unrecorded.
def kernel_tuner_cache:
    {wrong: "RuntimeFailedConfig", infeasible: "InvalidConfig", compile_error: "CompilationFailedConfig",
     timeout: "RuntimeFailedConfig", error: "RuntimeFailedConfig"} as $errors |
    map(select(.knobs and (.p50_us or $errors[.status]))) | select(. != []) | . as $rows |
    (map(.knobs | keys_unsorted) | add // [] | reduce .[] as $k ([]; if index([$k]) then . else . + [$k] end))
        as $names |
    def values($name): $rows | map(.knobs[$name]) | unique;
    def key: . as $knobs | $names | map($knobs[.] | tostring) | join(",");
    def times: {compile_time: 0, verification_time: 0, benchmark_time: 0, strategy_time: 0, framework_time: 0};
    def space: reduce $names[] as $name ([{}]; [.[] + (values($name)[] | {($name): .})]);
    {device_name: .[0].gpu, kernel_name: .[0].kernel,
     problem_size: (.[0].problem | [.seq_q // 1, .heads // 1, .batch // 1]),
     tune_params_keys: $names, tune_params: ($names | map({(.): values(.)}) | add), objective: "time",
     cache: ((space | map({key: key, value: (. + times + {time: "InvalidConfig", times: [], timestamp: "",
            unrecorded: true})}) | from_entries) +
        (map(. as $row | {key: (.knobs | key),
            value: (.knobs + times + {time: (.p50_us | ms // $errors[$row.status]), times: [.p50_us | ms | select(.)],
                compile_time: (.times_ms.compile // 0), verification_time: (.times_ms.validation // 0),
                benchmark_time: (.times_ms.benchmark // 0), timestamp: (.time // ""),
                registers, smem_bytes} | with_entries(select(.value != null)))}) | from_entries))} |
    # Kernel Tuner looks at the last three characters to tell whether the file was closed.
    tojson | .[:-2] + "}\n}";

def torch_imports: "import torch", "import torch.nn as nn", "import torch.nn.functional as F", "", "";

# Files of KernelBench. Per problem its reference NAME.py (Model, get_inputs, get_init_inputs), and per kernel
# NAME_KERNEL.py with ModelNew, which builds the kernel.
def kernelbench:
    def reference($p): [
        torch_imports,
        "class Model(nn.Module):",
        "    def forward(self, q, k, v):"] + (attention($p) | indented(8)) + ["", "",
        "def get_inputs():",
        "    q = torch.randn(\($p.batch), \($p.heads), \($p.seq_q), \($p.dim))",
        "    k, v = (torch.randn(\($p.batch), \($p.kv_heads), \($p.seq_kv), \($p.dim)) for _ in range(2))",
        "    return [q, k, v]", "", "",
        "def get_init_inputs():",
        "    return []"] | join("\n") + "\n";

    # The source stands in the file, because KernelBench executes text. PyTorch's headers come first there, and their
    # flags take CUDA's operators of half away.
    def candidate($row): [
        "# \($row | solution), fa_bench \($row.git // ""), \($row.p50_us) us on \($row.gpu)",
        "import torch.nn as nn",
        "from torch.utils.cpp_extension import load_inline", "",
        "source = r'''",
        ($row | one_file("torch_main.cu")) + "'''",
        "flags = [f\"-U__CUDA_NO_{what}__\" " +
            "for what in (\"HALF_OPERATORS\", \"HALF_CONVERSIONS\", \"HALF2_OPERATORS\")]",
        "extension = load_inline(name=\"\($row.kernel)_\($row.problem | task)\", cpp_sources=[], " +
            "cuda_sources=[source],",
        "                        extra_cuda_cflags=[\"-O3\", *flags])", "", "",
        "class ModelNew(nn.Module):",
        "    def forward(self, q, k, v):",
        "        return extension.forward(q, k, v)"] | join("\n") + "\n";

    problems | (.[0].problem) as $p | ($p | task) as $name |
    file("\($name).py"; reference($p)),
    (fastest[] | file("\($name)_\(.kernel).py"; candidate(.)));

def markdown:
    def figure: if . == null then "" elif . >= 100 then round else (. * 1000 | round / 1000) end;
    def cell: . // "" | tostring | gsub("\\|"; "\\|") | gsub("\n"; " ");
    def ratio: if .ratio == null then "" else "\(.ratio | figure) over \(.vs)" +
        (if .ratio_ci95 then " (\(.ratio_ci95 | map(figure | tostring) | join(" to ")))" else "" end) end;

    ["kernel", "tile", "problem", "GPU", "status", "p50 us", "p90 us", "TFLOP/s", "registers", "shared bytes",
     "spilled bytes", "ratio"] as $names |
    ($names | row), "|\($names | map("---") | join("|"))|",
    (.[] | [.kernel, (.knobs | tile), .problem_text, .gpu, .status, (.p50_us | figure), (.p90_us | figure),
        (.tflops | figure), .registers, .smem_bytes, .spill_bytes, ratio] | map(cell) | row);

# rbk_report.json and rbk_report.md. Per problem: PyTorch's fused attention (SDPA), the ladder of kernels, the best
# tile, and whether each criterion of success is met. $lines: everything read, for the rows of scripts/peers.sh, which
# time PyTorch beside a kernel.
def rbk_report:
    def accepted: 1.03; # what a comparison must exceed with its whole interval
    def inverse: if . then 1 / . else null end;
    def interval: if type == "array" and all(.[]; . != null) then . else null end; # few pairs have none

    # For each kernel the fastest row that is right, else the first.
    def ladder: group_by(.kernel) | map((map(select(.status == "pass" and .p50_us)) | min_by(.p50_us)) // .[0]) |
        sort_by([.p50_us == null, -(.p50_us // 0)]) |
        map({kernel, library: (.knobs == null), tile: (.knobs | tile), status, reason, p50_us, p90_us, tflops,
            over: .vs, ratio, ratio_ci95: (.ratio_ci95 | interval)});

    # PyTorch's attention and FlashAttention 3 on this problem; ratio: their time over our kernel's, paired if it can.
    def peers($p): [$lines[] | select(has("peers")) | by_peer |
        select($p.heads == $p.kv_heads and $p.seq_q == $p.seq_kv and
            [.batch, .heads, .seq, .dim, .causal, .dtype // "fp16"] ==
                [$p.batch, $p.heads, $p.seq_q, $p.dim, $p.causal, $p.dtype // "fp16"])] |
        (min_by(.us) // {peers: {}}) as $row | $row.peers | to_entries |
        map(select(.key | endswith("_scaled") | not) | $row.paired[.key] as $pair | {name: .key, source: $row.torch,
            p50_us: .value, p90_us: null, tflops: ($p.flop / .value / 1e6), slower_than: $row.kernel,
            ratio: ($pair.ratio // (.value / $row.us)), ratio_ci95: ($pair.ci95 | interval)});
    def fused($best): map(select(.kernel == "cudnn" and .p50_us)) | map({name: "cudnn record", source: "fa_bench",
        p50_us, p90_us, tflops, slower_than: $best.kernel} + if .over == $best.kernel then {ratio: (.ratio | inverse),
            ratio_ci95: (.ratio_ci95 | if . then reverse | map(inverse) else null end)}
        else {ratio: (if $best then .p50_us / $best.p50_us else null end), ratio_ci95: null} end);

    # met: null where nothing was compared.
    def criterion($name; $wanted; $values; met): {name: $name, wanted: $wanted, compared: ($values | length),
        met: (if $values == [] then null else all($values[]; met) end)};
    def low: .ratio_ci95[0] // .ratio;
    def criteria($sdpa): map(select(.library | not)) as $ours | [
        criterion("right"; "every kernel agrees with FP64 attention"; $ours; .status == "pass"),
        criterion("ladder"; "every kernel is over \(accepted) times as fast as the one it is compared with";
            $ours | map(select(.ratio)); low > accepted),
        criterion("sdpa"; "the best tile is over \(accepted) times as fast as every fused attention";
            $sdpa; low > accepted)];

    def problem: .[0] as $first | ladder as $ladder |
        ($ladder | map(select((.library | not) and .p50_us)) | last) as $best |
        (peers($first.problem) + ($ladder | fused($best))) as $sdpa |
        {problem: $first.problem_text, gpu: $first.gpu, sdpa: $sdpa, ladder: $ladder, best: $best,
         criteria: ($ladder | criteria($sdpa))};

    def cell: . // "-" | tostring | gsub("[|\n]"; " ");
    def table($names; f): ($names | row), "|\($names | map("---") | join("|"))|", (.[] | [f] | map(cell) | row);
    def ratio: "\(.ratio | thousandths)" +
        if .ratio_ci95 then " (\(.ratio_ci95 | map(thousandths) | join(" to ")))" else "" end;
    def verdict: if . == null then "not compared" elif . then "met" else "not met" end;
    def markdown: "## B,H,KV,Sq,Skv,D \(.problem), \(.gpu)", "",
        (.best | if . then "Best tile: `\(.kernel)` \(.tile), p50 \(.p50_us | thousandths) us, " +
            "p90 \(.p90_us | thousandths) us, \(.tflops | thousandths) TFLOP/s." else "No kernel has a time." end), "",
        (.criteria |
            table(["criterion", "wanted", "compared", "verdict"]; .name, .wanted, .compared, (.met | verdict))), "",
        (.ladder | table(["kernel", "tile", "status", "p50 us", "p90 us", "TFLOP/s", "over", "ratio"];
            .kernel, .tile, .status, (.p50_us | thousandths), (.p90_us | thousandths),
            (.tflops | thousandths), .over, ratio)), "",
        (.sdpa | table(["fused attention", "p50 us", "p90 us", "TFLOP/s", "slower than", "by"];
            .name, (.p50_us | thousandths), (.p90_us | thousandths), (.tflops | thousandths), .slower_than, ratio)), "";

    # Without a device nothing was run: it compiled alone, say, and that says nothing of right or wrong.
    (map(select(.problem and .gpu)) | group_by([.gpu, .problem_text]) | map(problem)) as $problems |
    select($problems != []) |
    {schema: "fa_bench.rbk_report/1", git: (map(.git // empty) | unique), problems: $problems} |
    file("rbk_report.json"; .),
    file("rbk_report.md"; ["# fa_bench as robust-kbench reports it", "", "Commits: \(.git | join(", ")). A ratio is " +
        "accepted above \(accepted), its 95 % interval included.", "", (.problems[] | markdown)] | join("\n"));

# Task folders of robust-kbench. forward.cu is the fastest of kernels/. Configurations vary batch and heads alone.
def robust_kbench:
    def function($p): [
        torch_imports,
        "def forward_fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:",
        "    \"\"\"",
        "    Attention forward: softmax(\($p.scale) * q k^T\(if $p.causal then " + causal mask" else "" end)) v " +
            "in FP16.", "",
        "    Args:",
        "        q (torch.Tensor): queries, shape (batch, heads, seq_q, dim).",
        "        k (torch.Tensor): keys, shape (batch, kv_heads, seq_kv, dim).",
        "        v (torch.Tensor): values, shaped like k.", "",
        "    Returns:",
        "        torch.Tensor: output, shaped like q.",
        "    \"\"\""] + (attention($p) | indented(4)) + ["", "",
        "class Model(nn.Module):",
        "    def forward(self, q, k, v, fn=forward_fn):",
        "        return fn(q, k, v)", "", "",
        "def get_inputs(batch=\($p.batch), kv_heads=\($p.kv_heads), seq_q=\($p.seq_q), seq_kv=\($p.seq_kv)):",
        "    q = torch.randn(batch, kv_heads * \($p.heads / $p.kv_heads), seq_q, \($p.dim), dtype=torch.float16)",
        "    k, v = (torch.randn(batch, kv_heads, seq_kv, \($p.dim), dtype=torch.float16) for _ in range(2))",
        "    return [q, k, v]", "", "",
        "input_names = [\"q\", \"k\", \"v\"]"] | join("\n") + "\n";

    def config($p): ($p | {batch, kv_heads, seq_q, seq_kv}) as $one |
        {single_input_configs: [$one], single_init_configs: [{}], single_shared_configs: [{}],
         multi_input_configs: ([$one] + [(1, 2, 4, 8) as $b | (1, 2) as $h |
            $one + {batch: $b, kv_heads: ($h * $p.kv_heads)}] | unique),
         multi_init_configs: [{}], multi_shared_configs: [{}]};

    # The kernel stands before PyTorch's headers, which may take CUDA's operators of half away.
    def extension: "#undef __CUDA_NO_HALF_OPERATORS__\n#undef __CUDA_NO_HALF_CONVERSIONS__\n" +
        "#undef __CUDA_NO_HALF2_OPERATORS__\n" + one_file("torch_main.cu");

    problems | .[0].problem as $p | ($p | task) as $name |
    file("\($name)/func_forward.py"; function($p)),
    file("\($name)/config_forward.json"; config($p)),
    (fastest | (.[0:1][] | file("\($name)/forward.cu"; extension)),
        (.[] | file("\($name)/kernels/\(.kernel).cu"; extension)));

# A row for each record of fa_bench or line of a leaderboard (with jq -s): those of $kernels (all when empty), $status
# and $group where these are not empty. The last line of a key counts.
def rows:
    def knobs_of($text): $text | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber? // .)}) | add;
    def milliseconds: if . == null then null else . * 1000 end;
    def problem_text: "\(.batch),\(.heads),\(.kv_heads),\(.seq_q),\(.seq_kv),\(.dim),\(mask)\(typed)";

    def row_of_record: . as $record |
        {key: null, kernel: (.variant // .kernel), knobs: .config, problem, status, reason, fault,
        gpu: (if .device.backend == "emu" then "CPU emulator" else .device.name end),
        arch: (.ptxas.arch // .device.arch), p50_us: .timing.p50_us, p90_us: .timing.p90_us, tflops: .throughput.tflops,
        registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes,
        vs: .vs.kernel, ratio: .vs.ratio, ratio_ci95: .vs.ratio_ci95, vs_p50_us: .vs.other_p50_us,
        errors: ([.check.references[]?] | {max_abs: (map(.max_abs_err // empty) | max),
            row_rel_l2: (map(.worst_row_rel_l2 // empty) | max)}),
        said: .check.published,
        published: (.provenance.command // "" | published_key as $key | $published[0][$key // ""]),
        libraries: {driver: (.provenance.driver // "none"), compiler: (.provenance.compiler // "none")},
        stage_s: .provenance.stage_s, git: .provenance.git, code_sha256: .provenance.code_sha256,
        time: .provenance.time};

    def row_of_line: {key, kernel, knobs: knobs_of(.knobs), problem, status, reason, fault, gpu,
        arch: (.group | split("|")[1]), group, p50_us, p90_us,
        tflops: (if .p50_us and .problem.flop then .problem.flop / .p50_us / 1e6 else null end),
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
    del(.order, .stage_s);

# The T4 schema of autotuning results. What was not run, or compiled alone, is no result.
def t4:
    {pass: "correct", wrong: "correctness", infeasible: "constraints", compile_error: "compile", timeout: "timeout",
     error: "runtime"} as $invalidity |
    def measurement($name; $value; $unit):
        if $value == null then empty else {name: $name, value: $value, unit: $unit} end;
    {schema_version: "1.0.0", metadata: {timeunit: "milliseconds"},
     results: map(select($invalidity[.status] and (.status != "pass" or .gpu)) | {
        timestamp: (.time // ""), configuration: (.knobs // {}),
        times: {compilation_time: (.times_ms.compile // 0), benchmark: (.times_ms.benchmark // 0), framework: 0,
            search_algorithm: 0, validation: (.times_ms.validation // 0),
            runtimes: (if .p50_us then [.p50_us | ms] else [] end)},
        invalidity: $invalidity[ended], correctness: (if .status == "pass" then 1 else 0 end),
        measurements: [measurement("time"; .p50_us | ms; "ms"), measurement("time_p90"; .p90_us | ms; "ms"),
            measurement("throughput"; .tflops; "TFLOP/s"), measurement("registers"; .registers; ""),
            measurement("shared_memory"; .smem_bytes; "bytes"), measurement("spilled"; .spill_bytes; "bytes"),
            measurement("reason"; .reason; "")],
        objectives: ["time"]})};
