#!/usr/bin/env bats
# --definition and --workload: published problems become options of ours.
load helper

# A definition: NAME "AXIS=SIZE or AXIS..." "INPUT:DTYPE:AXIS,AXIS ..."; an axis without a size is variable.
definition() {
    jq -n --arg name "$1" --arg axes "$2" --arg inputs "$3" '{name: $name, op_type: "attention", tags: [],
        axes: ($axes | split(" ") | map(split("=") |
            {(.[0]): (if .[1] then {type: "const", value: (.[1] | tonumber)} else {type: "var"} end)}) | add),
        inputs: ($inputs | split(" ") | map(split(":") |
            {(.[0]): {dtype: .[1], shape: (if .[2] then .[2] | split(",") else null end)}}) | add),
        outputs: {output: {shape: ["n", "h", "d"], dtype: "bfloat16"}, lse: {shape: ["n", "h"], dtype: "float32"}},
        reference: "def run(): pass"}'
}
indptr='kv_indptr:int32:len kv_indices:int32:pages sm_scale:float32'
paged="h=8 kv=2 d=32 ps=4 len pages all n"
decode() { definition gqa_paged_decode_h8_kv2_d32_ps4 "$paged" \
    "q:bfloat16:n,h,d k_cache:bfloat16:all,ps,kv,d v_cache:bfloat16:all,ps,kv,d $indptr"; }
# A line of a workload: DEFINITION AXES-JSON INPUTS-JSON
workload() {
    jq -nc --arg d "$1" --argjson axes "$2" --argjson inputs "$3" '{definition: $d, solution: null, evaluation: null,
        workload: {uuid: "u", axes: $axes, inputs: $inputs}}'
}
random='{"kv_indptr": {"type": "random"}, "qo_indptr": {"type": "random"},
    "sm_scale": {"type": "scalar", "value": 0.25}}'
saved='{"kv_indptr": {"type": "safetensors", "path": "blob/x.safetensors", "tensor_key": "kv"},
    "qo_indptr": {"type": "safetensors", "path": "blob/x.safetensors", "tensor_key": "qo"},
    "sm_scale": {"type": "scalar", "value": 0.25}}'
# A safetensors file: FILE TYPE (i or q) NAME=1,2,3...
safetensors() {
    python3 - "$@" <<'END'
import json, struct, sys
data, header = b"", {"__metadata__": {"by": "test"}}
for word in sys.argv[3:]:
    name, values = word.split("=")
    values = [int(v) for v in values.split(",")]
    part = struct.pack(f"<{len(values)}{sys.argv[2]}", *values)
    header[name] = {"dtype": {"i": "I32", "q": "I64"}[sys.argv[2]], "shape": [len(values)],
                    "data_offsets": [len(data), len(data) + len(part)]}
    data += part
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
END
}
selected() { # OPTIONS...: the problem as --select shows it
    ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl" --select "$@" | sed -n 's/^problem *//p'
}

@test "GQA over pages, decode: even lengths are a dense batch, others are lengths; the run passes" {
    decode >"$work/d.json"
    { workload gqa_paged_decode_h8_kv2_d32_ps4 '{"n": 3, "len": 4, "pages": 6, "all": 9}' "$random"
      workload gqa_paged_decode_h8_kv2_d32_ps4 '{"n": 3, "len": 4, "pages": 8, "all": 9}' "$random"; } >"$work/w.jsonl"
    [ "$(selected)" = "B=3 H=8 (K/V 2) S=1 (K/V 8) D=32 BF16 full, pages of 4 nhd" ]
    ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl:2" --select >"$work/out"
    grep -F "lengths: 3 and " "$work/out"
    [[ $(selected --heads 16 --seq-kv 40) == "B=3 H=16 (K/V 2) S=1 (K/V 40) D=32"* ]] # what is beside it wins
    decode | jq '.inputs |= (.k_cache.dtype = "float8_e4m3fn" | .v_cache.dtype = "float8_e4m3fn" |
        .k_scale = {dtype: "float32", shape: null})' >"$work/fp8.json" # an FP8 cache
    ./fa_bench --definition "$work/fp8.json" --workload "$work/w.jsonl" --kernel light --device emu --no-ptxas \
        --seeds 2 --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass" and .problem.dtype == "bf16" and .problem.kv_dtype == "e4m3"'
    ./fa_bench --source tests/features/plain.cu --device emu --seeds 1 --check cpu --quiet --json "$work/r.json" \
        --definition "$work/d.json" --workload "$work/w.jsonl:2"
    record_holds "$work/r.json" '.status == "pass" and (.problem | .lengths == {q: [1, 1, 1], kv: [12, 12, 8]} and
        .scale == 0.25 and .heads == 8 and .kv_heads == 2 and .page_size == 4 and .dtype == "bf16" and
        .strides == "bshd" and .causal == false) and .check.lse.passed'
    # Without a workload: the fixed axes alone.
    ./fa_bench --definition "$work/d.json" --batch 5 --seq 1 --seq-kv 64 --select |
        grep -F "B=5 H=8 (K/V 2) S=1 (K/V 64)"
}

@test "lengths of safetensors, from the root of the data set: prefill, ragged, and other V" {
    mkdir -p "$work/set/blob" "$work/set/workloads/gqa"
    definition gqa_ragged_prefill_causal_h4_kv2 "h=4 kv=2 d=48 v=32 len n m" \
        "q:float16:n,h,d k:float16:m,kv,d v:float16:m,kv,v qo_indptr:int32:len kv_indptr:int32:len sm_scale:float32" \
        >"$work/d.json"
    workload gqa_ragged_prefill_causal_h4_kv2 '{"n": 12, "m": 30, "len": 4}' "$saved" >"$work/set/workloads/gqa/w.jsonl"
    for type in i q; do
        safetensors "$work/set/blob/x.safetensors" $type qo=0,5,5,12 kv=0,9,10,30
        ./fa_bench --source tests/features/plain.cu --device emu --seeds 1 --check cpu --quiet --json "$work/r.json" \
            --definition "$work/d.json" --workload "$work/set/workloads/gqa/w.jsonl"
        record_holds "$work/r.json" '.status == "pass" and (.problem | .lengths == {q: [5, 0, 7], kv: [9, 1, 20]} and
            .causal and .dtype == "fp16" and .dim == 48 and .dim_v == 32)'
    done
    definition gqa_paged_prefill_causal_h8_kv2 "$paged" \
        "q:bfloat16:n,h,d k_cache:bfloat16:all,ps,kv,d v_cache:bfloat16:all,ps,kv,d qo_indptr:int32:len $indptr" \
        >"$work/d.json"
    safetensors "$work/set/blob/x.safetensors" i qo=0,4,8 kv=0,3,6
    workload gqa_paged_prefill_causal_h8_kv2 '{"n": 8, "pages": 6, "all": 9, "len": 3}' "$saved" \
        >"$work/set/workloads/gqa/w.jsonl"
    cp "$work/set/workloads/gqa/w.jsonl" "$work/set/w.jsonl"
    [[ $(./fa_bench --definition "$work/d.json" --workload "$work/set/w.jsonl" --select) == \
        *"B=2 H=8 (K/V 2) S=4 (K/V 12) D=32 BF16 causal, pages of 4 nhd"* ]]
}

@test "MLA in its absorbed form: one K/V head, V the first columns of K; SOL-ExecBench's bare lines" {
    definition mla_paged_decode_h16 "h=16 ckv=64 kpe=16 ps=1 len pages all n" "q_nope:bfloat16:n,h,ckv \
q_pe:bfloat16:n,h,kpe ckv_cache:bfloat16:all,ps,ckv kpe_cache:bfloat16:all,ps,kpe $indptr" >"$work/d.json"
    workload x '{"n": 2, "len": 3, "pages": 10, "all": 12}' "$random" | jq -c .workload >"$work/w.jsonl"
    [ "$(selected)" = "B=2 H=16 (K/V 1) S=1 (K/V 5) D=80/64 BF16 full, V in K, pages of 1 nhd" ]
}

@test "what the bench cannot say is infeasible by name; bad files are named" {
    decode >"$work/good.json"
    local name=gqa_paged_decode_h8_kv2_d32_ps4 axes='{"n": 3, "len": 4, "pages": 6, "all": 9}' case
    workload $name "$axes" "$random" >"$work/w.jsonl"
    refusal() { # CODE WORDS [JQ-OF-THE-DEFINITION]
        jq "${3:-.}" "$work/good.json" >"$work/d.json"
        refused "$1" "$2" selected
    }
    set -o pipefail
    refusal 3 "gemm: an operator that the bench does not have" '.name = "gemm" | .inputs = {a: {shape: ["n"]}}'
    refusal 3 "the bench cannot say its input alpha" '.inputs.alpha = {dtype: "float32", shape: null}'
    refusal 3 "k_scale and v_scale are for float8_e4m3fn" '.inputs.k_scale = {dtype: "float32", shape: null}'
    refusal 3 "Q is of another type than K and V" '.inputs.q.dtype = "float8_e4m3fn"'
    refusal 3 "v_cache of float16, the bench has" '.inputs.v_cache.dtype = "float16"'
    refusal 3 "k_cache of float8_e5m2, the bench has" '.inputs.k_cache.dtype = "float8_e5m2"'
    refusal 3 "must be fixed axes" '.axes.d = {type: "var"}'
    refusal 3 "it does not say that it is causal" '.inputs.qo_indptr = .inputs.kv_indptr'
    refusal 2 "the definition is other" '.name = "other"'
    refusal 2 "has no name, axes and inputs" 'del(.axes)'
    refusal 2 "is no JSON object" '[]'
    cp "$work/good.json" "$work/d.json"
    refused 2 "has no JSON object in line 2" ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl:2"
    refused 2 "N from 1" ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl:0"
    refused 2 "--definition: cannot read $work/none" ./fa_bench --definition "$work/none" --workload "$work/w.jsonl"
    refused 2 "--workload goes with --definition" ./fa_bench --workload "$work/w.jsonl"
    refused 2 "one of them" ./fa_bench --definition "$work/d.json" --preset gpt-oss
    refused 2 "--lengths takes" ./fa_bench --lengths workload
    workload $name "$axes" "$saved" >"$work/w.jsonl"
    refusal 2 "no file 'blob/x.safetensors' beside"
    mkdir "$work/blob"
    for case in "i kv=0,1,2" "i kv=0,2,1,3" "i kv=-1,0,1,2" "i kv=0,1,2,3,4" "i other=0,1,2,3"; do
        safetensors "$work/blob/x.safetensors" $case
        refusal 2 "x.safetensors"
    done
    safetensors "$work/blob/x.safetensors" q kv=0,1,2,9999999999
    refusal 2 "sequence 2 is longer than"
    printf 'x' >"$work/blob/x.safetensors"
    refusal 2 "is no safetensors file"
    printf '\377\377\377\377\377\377\377\377{}' >"$work/blob/x.safetensors"
    refusal 2 "is no safetensors file"
    safetensors "$work/blob/x.safetensors" i kv=0,1,2,3
    [ "$(selected)" = "B=3 H=8 (K/V 2) S=1 (K/V 4) D=32 BF16 full, pages of 4 nhd" ]
}

# make KIND FOLDER: a data set by hand with values for every tensor. judge KIND FOLDER: o.npy there is its attention.
values() {
    python3 - "$@" <<'END'
import json, math, os, random, struct, sys
verb, kind, folder = sys.argv[1:]
random.seed(kind)
def bf16(x): return struct.unpack("<f", b"\0\0" + struct.pack("<f", x)[2:])[0]
def tensor(*shape): return {"shape": list(shape), "v": [bf16(random.gauss(0, 1)) for _ in range(math.prod(shape))]}
def row(t, index): # the last dimension at these indices
    at = 0
    for i, size in zip(index, t["shape"]): at = at * size + i
    return t["v"][at * t["shape"][-1]:(at + 1) * t["shape"][-1]]
def whole(*values): return {"shape": [len(values)], "i": list(values)}
if dense := kind in ("dense", "heads"):
    def at(b, i, h, *d): return (b, h, i, *d) if kind == "heads" else (b, i, h, *d)
    t = {"q": tensor(*at(2, 3, 4, 16)), "k": tensor(*at(2, 5, 2, 16)), "v": tensor(*at(2, 5, 2, 24))}
    lengths, heads, group, scale, causal = [(3, 5), (3, 5)], 4, 2, 0.25, True
    q, k, v = (lambda b, h, i: row(t["q"], at(b, i, h))), (lambda b, h, j: row(t["k"], at(b, j, h))), \
        (lambda b, h, j: row(t["v"], at(b, j, h)))
else:
    start, pages = [0, 2, 3], [4, 1, 3] # of two sequences: pages 4 and 1, page 3
    lengths, heads, scale, causal = [(1, 8), (1, 4)], 4, 0.25, False
    def at(b, j): return pages[start[b] + j // 4], j % 4
    t = {"kv_indptr": whole(*start), "kv_indices": whole(*pages)}
if kind == "paged":
    t |= {"q": tensor(2, 4, 16), "k_cache": tensor(5, 4, 2, 16), "v_cache": tensor(5, 4, 2, 16)}
    group = 2
    q, k, v = (lambda b, h, i: row(t["q"], (b, h))), (lambda b, h, j: row(t["k_cache"], (*at(b, j), h))), \
        (lambda b, h, j: row(t["v_cache"], (*at(b, j), h)))
if kind == "mla":
    t |= {"q_nope": tensor(2, 4, 16), "q_pe": tensor(2, 4, 8), "ckv_cache": tensor(5, 4, 16),
          "kpe_cache": tensor(5, 4, 8)}
    group = 4
    q = lambda b, h, i: row(t["q_nope"], (b, h)) + row(t["q_pe"], (b, h))
    k = lambda b, h, j: row(t["ckv_cache"], at(b, j)) + row(t["kpe_cache"], at(b, j))
    v = lambda b, h, j: row(t["ckv_cache"], at(b, j))
if verb == "make":
    os.makedirs(folder, exist_ok=True)
    data, header = b"", {}
    for name, x in t.items():
        part = struct.pack(f"<{len(x['i'])}i", *x["i"]) if "i" in x else \
            b"".join(struct.pack("<f", e)[2:] for e in x["v"])
        header[name] = {"dtype": "I32" if "i" in x else "BF16", "shape": x["shape"],
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    open(f"{folder}/{kind}.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
    sys.exit()
raw = open(f"{folder}/o.npy", "rb").read()
size = 10 + struct.unpack("<H", raw[8:10])[0]
got = iter(struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(size, len(raw), 2))
def of(b, h, i): # a row of the output
    seq_q, seq_kv = lengths[b]
    keys = range(seq_kv if not causal else max(0, i + seq_kv - seq_q + 1))
    s = [scale * sum(x * y for x, y in zip(q(b, h, i), k(b, h // group, j))) for j in keys]
    w = [math.exp(x - max(s)) for x in s]
    return [sum(w[n] * v(b, h // group, j)[d] for n, j in enumerate(keys)) / sum(w) for d in range(len(v(b, 0, 0)))]
batches = [[b] for b in range(2)] if dense else [[0, 1]] # with lengths: one batch of all rows
for some in batches:
    for h in range(heads):
        for b in some:
            for i in range(lengths[b][0]):
                for want in of(b, h, i):
                    assert abs(next(got) - want) < 2e-2
END
}
of_file() { # KIND PATH NAMES...: the inputs of a workload, all of a file
    jq -nc --arg key "$1" --arg path "$2" '[$ARGS.positional[] | {(.): {type: "safetensors", path: $path,
        tensor_key: .}}] | add + {sm_scale: {type: "scalar", value: 0.25}}' --args "${@:3}"
}
run_values() { # WORKLOAD OPTIONS...
    ./fa_bench --source tests/features/plain.cu --device emu --seeds 1 --check cpu --quiet --json "$work/r.json" \
        --dump "$work/dump" --definition "$work/d.json" --workload "$@"
}

@test "values of safetensors files are the inputs: pages by kv_indices, and MLA's parts of K and Q" {
    local name=gqa_paged_decode_h4_kv2 axes='{"n": 2, "len": 3, "pages": 3, "all": 5}'
    definition $name "h=4 kv=2 d=16 ps=4 len pages all n" \
        "q:bfloat16:n,h,d k_cache:bfloat16:all,ps,kv,d v_cache:bfloat16:all,ps,kv,d $indptr" >"$work/d.json"
    values make paged "$work/blob"
    workload $name "$axes" "$(of_file paged blob/paged.safetensors q k_cache v_cache kv_indptr kv_indices)" \
        >"$work/w.jsonl"
    run_values "$work/w.jsonl" --seeds 3
    values judge paged "$work/dump"
    record_holds "$work/r.json" '.status == "pass" and ([.check.draws[].given] == [true, true, false])' \
        '.check.published | .rule == "flashinfer-bench" and .passed and .atol == 0.01 and .matched_ratio == 1 and
            .required_matched_ratio == 1 and .lse_matched_ratio == 1 and .max_error_cap == null and .failure == null'
    # What changes the size leaves the values without a place; a file that is not as the definition says is refused.
    refused 2 "values, which an option beside it" run_values "$work/w.jsonl" --heads 8
    refused 2 "values, which an option beside it" run_values "$work/w.jsonl" --dtype fp16
    sed -i s/bfloat16/float16/ "$work/d.json"
    refused 2 "q is BF16 in its file" run_values "$work/w.jsonl"
    sed -i s/float16/bfloat16/ "$work/d.json"
    workload $name '{"n": 2, "len": 3, "pages": 3, "all": 3}' \
        "$(of_file paged blob/paged.safetensors k_cache kv_indptr kv_indices)" >"$work/w.jsonl"
    refused 2 "k_cache has another shape" run_values "$work/w.jsonl"

    definition mla_paged_decode_h4 "h=4 ckv=16 kpe=8 ps=4 len pages all n" "q_nope:bfloat16:n,h,ckv \
q_pe:bfloat16:n,h,kpe ckv_cache:bfloat16:all,ps,ckv kpe_cache:bfloat16:all,ps,kpe $indptr" >"$work/d.json"
    values make mla "$work/blob"
    workload mla_paged_decode_h4 "$axes" "$(of_file mla blob/mla.safetensors q_nope q_pe ckv_cache kpe_cache \
        kv_indptr kv_indices)" >"$work/w.jsonl"
    run_values "$work/w.jsonl"
    values judge mla "$work/dump"
    record_holds "$work/r.json" '.status == "pass" and .problem.v_in_k and .check.draws[0].given'
}

@test "SOL-ExecBench's own layout: dense tensors, axes by expression, blobs beside the set, a tolerance of the line" {
    local set="$work/data/benchmark/FlashInfer-Bench/gqa" path=flashinfer-trace/blob/dense.safetensors
    mkdir -p "$set"
    definition gqa_hr2_causal "B Q KV H_q H_kv H_r=2 D_k=16 D_v=24" \
        "q:bfloat16:B,Q,H_q,D_k k:bfloat16:B,KV,H_kv,D_k v:bfloat16:B,KV,H_kv,D_v" |
        jq '.axes.H_kv = {type: "expr", expression: "(H_q // H_r - 0) * 2 ** 0 % 8"}' >"$work/d.json"
    values make dense "$work/data/flashinfer-trace/blob"
    line() { # TOLERANCE
        jq -nc --argjson inputs "$(of_file dense "data/$path" q k v)" --argjson tolerance "$1" \
            '{uuid: "u", axes: {B: 2, Q: 3, KV: 5, H_q: 4}, inputs: $inputs} + $tolerance' >"$set/workload.jsonl"
    }
    line '{}'
    run_values "$set/workload.jsonl"
    values judge dense "$work/dump"
    record_holds "$work/r.json" '.status == "pass" and (.problem | .causal and .kv_heads == 2 and .dim_v == 24)' \
        '.check.published | .rule == "sol-execbench" and .passed and .required_matched_ratio == 0.99'
    line '{"tolerance": {"max_atol": 0, "max_rtol": 0, "required_matched_ratio": 0.999}}'
    run_values "$set/workload.jsonl" --quiet
    record_holds "$work/r.json" '.status == "pass" and (.check.published.passed | not)' '.check.published |
        .lse_matched_ratio < 0.999 and (.failure | test("^[0-9.]+ % of .* are inside, 99.9 % must be$"))'
    line '{"tolerance": {"max_error_cap": 1e-9, "required_matched_ratio": 0}}'
    run_values "$set/workload.jsonl"
    record_holds "$work/r.json" '.check.published | (.passed | not) and .max_error_cap == 1e-9 and
        (.failure | test("^an element of .* is off by .*, 1e-09 at most$"))'
    # Rows without keys: their LSE of -inf is right, and fails where it is not allowed.
    jq '.axes += {Q: 7}' -c "$set/workload.jsonl" | jq -c '.inputs |= map_values(select(.type == "scalar"))' \
        >"$work/w.jsonl"
    run_values "$work/w.jsonl"
    record_holds "$work/r.json" '.status == "pass"' \
        '.check.published.failure == "the log-sum-exp has an infinity or NaN"'
    jq -c '.tolerance = {allow_negative_inf: true}' "$work/w.jsonl" >"$work/x" && mv "$work/x" "$work/w.jsonl"
    run_values "$work/w.jsonl"
    record_holds "$work/r.json" '.check.published.passed'
    # What says that it is not causal is not; a kind of input that the bench cannot make is named.
    jq '.name = "gqa_hr2" | .reference = "sdpa(q, k, v, is_causal=False)"' "$work/d.json" >"$work/x"
    ./fa_bench --definition "$work/x" --workload "$set/workload.jsonl" --select | grep -F "D=16/24 BF16 full"
    jq '.axes.H_kv.expression = "H_q // (H_r"' "$work/d.json" >"$work/x"
    refused 3 "must be fixed axes" ./fa_bench --definition "$work/x" --workload "$set/workload.jsonl" --select
    decode >"$work/d.json"
    jq -nc '{axes: {n: 3, len: 4, pages: 6, all: 9}, inputs: {kv_indptr: {type: "custom"}}}' >"$work/w.jsonl"
    refused 3 "own Python makes kv_indptr" ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl" --select
    # Heads before rows: told by the name of their axis, or because it is fixed.
    values make heads "$work/data"
    jq -nc --argjson inputs "$(of_file heads heads.safetensors q k v)" \
        '{axes: {B: 2, Q: 3, KV: 5, num_heads: 4}, inputs: $inputs}' >"$work/data/w.jsonl"
    for heads in num_heads N=4; do
        definition sdpa_causal "B $heads G=2 Q KV D_k=16 D_v=24" "q:bfloat16:B,${heads%=*},Q,D_k \
k:bfloat16:B,G,KV,D_k v:bfloat16:B,G,KV,D_v" >"$work/d.json"
        run_values "$work/data/w.jsonl"
        values judge heads "$work/dump"
    done
}
