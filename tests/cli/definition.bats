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
    refusal 3 "the bench cannot say its input k_scale" '.inputs.k_scale = {dtype: "float32", shape: null}'
    refusal 3 "tensors of float8_e4m3fn" '.inputs.q.dtype = "float8_e4m3fn"'
    refusal 3 "must be fixed axes" '.axes.d = {type: "var"}'
    refusal 3 "it does not say that it is causal" '.inputs.qo_indptr = .inputs.kv_indptr'
    refusal 2 "the definition is other" '.name = "other"'
    refusal 2 "has no name, axes and inputs" 'del(.axes)'
    refusal 2 "is no JSON object" '[]'
    cp "$work/good.json" "$work/d.json"
    refused 2 "has no JSON object in line 2" ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl:2"
    refused 2 "N from 1" ./fa_bench --definition "$work/d.json" --workload "$work/w.jsonl:0"
    refused 2 "--workload goes with --definition" ./fa_bench --workload "$work/w.jsonl"
    refused 2 "one of them" ./fa_bench --definition "$work/d.json" --preset gpt-oss
    refused 2 "--lengths takes" ./fa_bench --lengths workload
    workload $name "$axes" "$saved" >"$work/w.jsonl"
    refusal 2 "no file 'blob/x.safetensors' beside"
    mkdir "$work/blob"
    for case in "i kv=0,1,2" "i kv=0,2,1,3" "i kv=-1,0,1,2" "i kv=0,1,2,3,4" "i other=0,1,2,3" \
        "q kv=0,1,2,9999999999"; do
        # shellcheck disable=SC2086 # words
        safetensors "$work/blob/x.safetensors" $case
        refusal 2 "x.safetensors"
    done
    printf 'x' >"$work/blob/x.safetensors"
    refusal 2 "is no safetensors file"
    printf '\377\377\377\377\377\377\377\377{}' >"$work/blob/x.safetensors"
    refusal 2 "is no safetensors file"
    safetensors "$work/blob/x.safetensors" i kv=0,1,2,3
    [ "$(selected)" = "B=3 H=8 (K/V 2) S=1 (K/V 4) D=32 BF16 full, pages of 4 nhd" ]
}
