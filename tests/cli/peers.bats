#!/usr/bin/env bats
# The comparison with PyTorch: what counts, what is written, what is NOT-RUN; on made-up records, and on real arrays
# where PyTorch is.
load helper
load stub_bench

# Peers at 20 us (fa2), 15 us (cudnn), 30 us (efficient); math has no memory; fa3 takes what $STUB/fa3 says, and without
# that file is not installed. Dies at the shape of $STUB/die. A problem with a cubin, whose contents go to $STUB/cubins,
# has its peers paired: 60 us beside our 50 us but for cudnn's 45; $STUB/pairs says otherwise.
prepare() {
    make_stub
    executable "$work/peers" <<'END'
#!/usr/bin/env bash
set -eu
echo "$*" >>"$STUB/server"
while read -r shape; do
    echo "$shape" >>"$STUB/shapes"
    [[ ! -e $STUB/die || $(jq .seq <<<"$shape") != "$(cat "$STUB/die")" ]] || exit 3
    pairs='{"status": "pass", "reason": null, "kernel_p50_us": 50, "p50_us": 60, "ratio": 1.2,
        "ratio_ci95": [1.19, 1.21], "blocks": 11}'
    if cubin=$(jq -er '.cubin // empty' <<<"$shape"); then cat "$cubin" >>"$STUB/cubins"; else pairs=null; fi
    [[ $pairs == null || ! -e $STUB/pairs ]] || pairs=$(cat "$STUB/pairs")
    jq -c --argjson fa3 "$(cat "$STUB/fa3" 2>/dev/null || echo null)" --argjson pairs "$pairs" \
        '[{kernel: "torch_flash", us: 20}, {kernel: "torch_cudnn", us: 15}, {kernel: "torch_efficient", us: 30}] |
        map({kernel, status: "pass", reason: null, timing: {p50_us: .us}, provenance: {compiler: "torch stub"}}) +
        [{kernel: "torch_math", status: "infeasible", reason: "memory", timing: null}] +
        [{kernel: "flash_attn_3", provenance: {compiler: "torch stub, flash_attn_3 3"}} +
            if $fa3 then {status: "pass", reason: null, timing: {p50_us: $fa3}}
            else {status: "not_run", reason: "No module", timing: null} end] |
        if $pairs then map(if .status == "pass" then .paired = $pairs else . end |
            if .kernel == "torch_cudnn" and $pairs.status == "pass" then .paired += {p50_us: 45, ratio: 0.9} else . end)
        else . end' <<<"$shape"
done
END
    export PEERS_TORCH=$work/peers
    printf '%s\n' '# two problems' '--seq 512' '' '--batch 1 --seq 128 --causal' >"$work/problems"
}

peers() {
    scripts/peers.sh --problems "$work/problems" --out "$work/p/peers.json" --library none "$@"
}

edit_rows() { # FILTER
    jq "$1" "$work/p/peers.json" >"$work/x" && mv "$work/x" "$work/p/peers.json"
}

@test "row, best peer, ratio, geometric mean" {
    run -0 peers --kernel one
    [[ ${lines[0]} == "2,8,512,64  one 50 us  best peer cudnn 15 us  ratio 0.3, paired 0.9" ]]
    [[ ${lines[1]} == "1,8,128,64 causal  one 50 us  best peer cudnn 15 us  ratio 0.3, paired 0.9" ]]
    [[ ${lines[2]} == "geometric mean of best peer / ours over 2 shapes: 0.3 (solo), 0.9 (paired)" ]]
    jq -e 'length == 2 and (.[0] | .batch == 2 and .heads == 8 and .seq == 512 and .dim == 64 and .causal == false and
        .kernel == "one" and .config.m == 16 and .us == 50 and
        .peers == {fa2: 20, cudnn: 15, efficient: 30} and .best_peer == "cudnn" and .ratio == 0.3 and
        .absent.math == "memory")' "$work/p/peers.json"
    [ "$(wc -l <"$STUB/server")" -eq 1 ] # one PyTorch for all shapes
}

@test "every measured peer is paired with the kernel that counts; the row has the ratios and the least of them" {
    peers --kernel two,one
    [ "$(cat "$STUB/cubins")" = "$(printf 'one 16 4\none 16 4')" ]
    jq -e 'length == 2 and all(.[]; .paired == {fa2: {ratio: 1.2, ci95: [1.19, 1.21], us: 60, kernel_us: 50},
        cudnn: {ratio: 0.9, ci95: [1.19, 1.21], us: 45, kernel_us: 50},
        efficient: {ratio: 1.2, ci95: [1.19, 1.21], us: 60, kernel_us: 50}} and .paired_ratio == 0.9 and
        .unpaired == {} and .kernel == "one")' "$work/p/peers.json"
    # A row without pairs is no answer, but for --no-pairs.
    edit_rows 'map(if .seq == 512 then del(.paired) else . end)'
    run peers --kernel two,one --no-pairs
    [ "${#lines[@]}" -eq 1 ]
    run peers --kernel two,one
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} == "2,8,512,64 "* ]]
    jq -e 'all(.[]; .paired.cudnn.ratio == 0.9)' "$work/p/peers.json"
    # The mean says over how many.
    edit_rows 'map(if .seq == 512 then .paired_ratio = null else .paired_ratio = 1.1 end)'
    run peers --kernel two,one
    [[ $output == *": 0.3 (solo), 1.1 (paired, over 1)" ]]
}

@test "--no-pairs: no cubin, nothing of it in row and line" {
    run -0 peers --kernel one --no-pairs
    [[ ${lines[0]} == *"ratio 0.3" ]]
    [[ ${lines[2]} == "geometric mean of best peer / ours over 2 shapes: 0.3" ]]
    [ ! -e "$STUB/cubins" ]
    run grep -c -- --cubin "$STUB/commands"
    [ "$output" -eq 0 ]
    jq -e 'all(.[]; (has("paired") or has("paired_ratio") or has("unpaired")) | not)' "$work/p/peers.json"
}

# bats test_tags=slow
@test "a pairing that is refused, or wrong, or of a library, has a reason and no ratio; a wrong one fails the run" {
    echo '{"status": "not_run", "reason": "ABI 9"}' >"$STUB/pairs"
    run -0 peers --kernel one
    [[ ${lines[0]} == *"ratio 0.3  not paired: "*"cudnn"*": ABI 9" ]]
    [[ ${lines[2]} == *"over 2 shapes: 0.3" ]]
    jq -e 'all(.[]; .paired == {} and .paired_ratio == null and .unpaired.fa2 == "ABI 9" and .ratio > 0)' \
        "$work/p/peers.json"
    run peers --kernel one # an answer
    [ "${#lines[@]}" -eq 1 ]
    echo '{"status": "wrong", "reason": "our kernel differs from FP64 by 1"}' >"$STUB/pairs"
    run -1 peers --kernel one --again
    [[ ${lines[0]} == *"  wrong: paired: our kernel differs from FP64 by 1" ]]
    jq -e 'all(.[]; .status == "wrong" and .us == null and .ratio == null and .paired_ratio == null and
        .peers.fa2 == 20)' "$work/p/peers.json"
    run peers --kernel one # no answer
    [ "${#lines[@]}" -eq 3 ]
    rm "$STUB/cubins" "$STUB/pairs"
    echo 'lib 16 4 70' >>"$STUB/times"
    printf '%064d' 3 >"$STUB/source.lib"
    run -0 peers --kernel lib --again
    [ ! -e "$STUB/cubins" ]
    jq -e 'all(.[]; .kernel == "lib" and .us == 70 and .paired == {} and .unpaired.cudnn == "no cubin")' \
        "$work/p/peers.json"
    run grep -c -- '--kernel lib.*--cubin' "$STUB/commands"
    [ "$output" -eq 0 ]
}

# bats test_tags=slow
@test "FlashAttention 3 is a peer like the others where it is measured; where it is not, the row says why" {
    echo 14 >"$STUB/fa3"
    peers --kernel one
    jq -e 'length == 2 and all(.[]; .best_peer == "fa3" and .ratio == 0.28 and .peers.fa3 == 14 and
        (.absent | has("fa3") | not) and .torch == "torch stub, flash_attn_3 3")' "$work/p/peers.json"
    echo 16 >"$STUB/fa3"
    peers --kernel one --again
    jq -e 'all(.[]; .best_peer == "cudnn" and .ratio == 0.3 and .peers.fa3 == 16)' "$work/p/peers.json"
    rm "$STUB/fa3"
    peers --kernel one --again
    jq -e 'all(.[]; (.peers | has("fa3") | not) and .absent.fa3 == "No module")' "$work/p/peers.json"
    run peers --kernel one --peers fa3 # the rows say why it has no time
    [ "${#lines[@]}" -eq 1 ]
    edit_rows 'map(del(.absent.fa3))'
    run peers --kernel one --peers fa3
    [ "${#lines[@]}" -eq 3 ]
    tail -n 1 "$STUB/server" | grep -qx -- '--serve --backends fa3 --max-time 0.15'
}

# bats test_tags=slow
@test "without --kernel the last rung that serves the shape; with several the fastest" {
    peers
    jq -e 'all(.[]; .kernel == "two" and .us == 90)' "$work/p/peers.json"
    peers --kernel two,one
    jq -e 'length == 2 and all(.[]; .kernel == "one" and .us == 50)' "$work/p/peers.json"
}

# bats test_tags=slow
@test "a stopped run goes on; an edited source and --again are measured anew" {
    echo 128 >"$STUB/die"
    run -4 peers --kernel one
    [[ $output == *"NOT-RUN: the peers gave no answer"* ]]
    jq -e 'length == 1' "$work/p/peers.json"
    rm "$STUB/die"
    run -0 peers --kernel one
    [ "${#lines[@]}" -eq 2 ] # one shape and the mean of both
    [[ $output == *"over 2 shapes"* ]]
    run peers --kernel one
    [ "${#lines[@]}" -eq 1 ]
    # A row without one of the peers that are asked for is measured anew; one that says why the peer has no time is not.
    edit_rows 'map(if .seq == 512 then del(.peers.fa2) else . end)'
    run peers --kernel one --peers cudnn,math
    [ "${#lines[@]}" -eq 1 ]
    run peers --kernel one --peers flash,cudnn
    [ "${#lines[@]}" -eq 2 ]
    jq -e 'all(.[]; .peers.fa2 == 20)' "$work/p/peers.json"
    printf '%064d' 4 >"$STUB/source.one"
    run peers --kernel one
    [ "${#lines[@]}" -eq 3 ]
    run peers --kernel one --again
    [ "${#lines[@]}" -eq 3 ]
    jq -e 'length == 2' "$work/p/peers.json"
}

# bats test_tags=slow
@test "--dtype bf16: kernel, peers and rows are of that type; its file is its own" {
    run -0 peers --kernel one --dtype bf16
    [[ ${lines[0]} == "2,8,512,64 bf16  one 50 us  best peer cudnn 15 us  ratio 0.3, paired 0.9" ]]
    [[ ${lines[1]} == "1,8,128,64 causal bf16  "* ]]
    jq -e 'length == 2 and all(.[]; .dtype == "bf16")' "$work/p/peers.json"
    [ "$(grep -c -- '--causal --dtype bf16 ' "$STUB/commands")" -ge 1 ]
    [ "$(jq -r .dtype "$STUB/shapes" | sort -u)" = bf16 ]
    jq -n -L scripts/lib --arg file f --argjson kinds '{"one": "hand"}' --argjson values false \
        'import "evidence" as m; m::candidates' \
        "$work/p/peers.json" | jq -se 'length == 2 and all(.[]; .made_of[0].options | all(contains("--dtype bf16")))'
    run peers --kernel one --dtype bf16
    [ "${#lines[@]}" -eq 1 ] # known
    refused 2 "holds rows of another --dtype" peers --kernel one
    edit_rows 'map(del(.dtype))' # an older file: FP16
    refused 2 "holds rows of another --dtype" peers --kernel one --dtype bf16
}

@test "a wrong kernel has no ratio and fails the run" {
    echo 'one 16 4' >"$STUB/wrong"
    run -1 peers --kernel one
    [ ! -e "$STUB/cubins" ]
    [[ ${lines[0]} == *"wrong: made up"* ]]
    [[ $output == *"no ratio"* ]]
    jq -e 'all(.[]; .us == null and .ratio == null and .status == "wrong")' "$work/p/peers.json"
}

@test "no GPU, no PyTorch: NOT-RUN, exit 4" {
    if ! command -v nvidia-smi >/dev/null; then
        FA_BENCH=$PWD/fa_bench run -4 peers
        [[ $output == *"NOT-RUN: "*libcuda* ]]
        [ ! -e "$work/p" ]
    fi
    PEERS_TORCH=false run -4 peers
    [[ $output == *"NOT-RUN: the peers gave no answer"* ]]
    [ ! -e "$work/p" ]
    python3 -c 'import torch' 2>/dev/null && skip "PyTorch is here"
    run -4 scripts/lib/peers/peers_torch.py --serve
    [[ $output == *"NOT-RUN: no PyTorch here"* ]]
}

@test "--dry-run shows each committed problem" {
    [ "$(scripts/peers.sh --dry-run | wc -l)" -eq 41 ]
    run -0 scripts/peers.sh --dry-run --only causal
    [ "${#lines[@]}" -eq 20 ]
}

@test "bad arguments are refused" {
    refused 2 "no kernel 'nosuch'" scripts/peers.sh --kernel nosuch
    refused 2 "--problems takes lines of problem options, not line 1:gh100" \
        scripts/peers.sh --problems tests/golden/ncu_query.txt
    refused 2 "--problems takes a file that can be read" scripts/peers.sh --problems "$work"
    refused 2 "no problem of" scripts/peers.sh --only 77777
    refused 2 "--dtype takes fp16 or bf16, not 'half'" scripts/peers.sh --dtype half
    refused 2 "--peers takes flash" scripts/peers.sh --peers torch
    refused 2 "--peers takes flash" scripts/peers.sh --peers fa2
    scripts/peers.sh --peers flash,fa3 --dry-run --only 2,8,512,64,full
    refused 2 "--max-time takes seconds" scripts/peers.sh --max-time soon
    run -2 scripts/lib/peers/peers_torch.py --serve --backends fast
    [[ $output == *"--backends takes"*fa3*"not 'fast'"* ]]
    run -2 scripts/lib/peers/peers_torch.py
}

@test "parity: O of fa_bench is PyTorch's attention of the dumped inputs, and a changed O is not" {
    python3 -c 'import torch' 2>/dev/null || skip "no PyTorch"
    ./fa_bench --kernel light --device emu --batch 1 --heads 4 --kv-heads 2 --seq 65 --dim 72 --causal --seeds 1 \
        --dump "$work" --json "$work/record.json" --quiet
    scripts/lib/peers/peers_torch.py --parity "$work" >"$work/parity.json"
    jq -e '.[0] | .exact.passed and .exact.rows_checked == 260 and .torch.max_abs_difference < 2e-3' "$work/parity.json"
    jq '.problem.causal = false' "$work/record.json" >"$work/x" && mv "$work/x" "$work/record.json"
    run -1 scripts/lib/peers/peers_torch.py --parity "$work"
}

# A made-up torch, tensors and packages, which say how they were called: no number here was measured.
@test "FlashAttention 3 takes and gives transposed tensors; without its package, or elsewhere, it is not_run" {
    python3 -c 'import flash_attn_interface' 2>/dev/null && skip "FlashAttention 3 is here"
    mkdir "$work/broken"
    echo 'raise ImportError("undefined symbol: made up\nmore of it")' >"$work/broken/flash_attn_interface.py"
    cat >"$work/fake.py" <<'END'
import contextlib, importlib.metadata, sys
from types import SimpleNamespace as Fake
import peers_calls, peers_torch
class Tensor:
    def __init__(self, text): self.text = text
    def transpose(self, a, b): return Tensor(f"{self.text}{a}{b}")
class Refused(Exception): pass
def flash_attn_func(q, k, v, softmax_scale=None, causal=False):
    assert (q.text, k.text, v.text, softmax_scale, causal) == ("q12", "k12", "v12", 0.125, True)
    return Tensor("o"), "log-sum-exp"
def refuse(*tensors, **options): raise Refused()
def fwd(is_causal, num_splits, window_size_left, window_size_right, **tensors):
    assert (num_splits, window_size_left, window_size_right) == (0, -1, -1)
    return flash_attn_func(causal=is_causal, **tensors)
fwd.default = Fake(_schema=Fake(arguments=[]))
problem = {"batch": 1, "heads": 2, "seq_q": 8, "seq_kv": 16, "causal": True}
inputs = object.__new__(peers_torch.Inputs)
inputs.__dict__.update(q=Tensor("q"), k=Tensor("k"), v=Tensor("v"), scale=0.125, causal=True, sinks=None, table=None,
    dtype="fp16", dtype_kv="fp16", backward=False, more={"window_left": -1}, problem={**peers_torch.DENSE, **problem},
    seen=lambda output: output.transpose(1, 2), parity=lambda output: {"passed": output.text == "o12"})
peers_torch.captured = lambda call: (call().text, 3)
peers_torch.graph_samples = lambda graph, calls, arguments: [7.0 if (graph, calls) == ("o12", 3) else 0] * 11
def pair(graph, calls, arguments):
    return {"status": "pass", "reason": None, **peers_torch.ratio_of([(1, calls, 3, 1)] * 11)}
peers_torch.torch = peers_calls.torch = Fake(__version__="fake", no_grad=contextlib.nullcontext,
    backends=Fake(cudnn=Fake(version=lambda: 1)), ops=Fake(flash_attn_3=Fake(fwd=fwd)),
    cuda=Fake(is_available=lambda: False, synchronize=lambda: None))
def said(backend, major=9, pair=None):
    peers_torch.torch.cuda.get_device_capability = lambda: (major, 0)
    it = peers_torch.answer_of(backend, inputs, Fake(seed=42, warmup_ms=0), pair)
    assert it["kernel"] == f"flash_attn_{backend[2:]}" and ("paired" in it) <= (pair is not None), it
    assert (it["status"], it["timing"]) == (("not_run", None) if it["reason"] else ("pass", {"p50_us": 7.0})), it
    return it["reason"] or it["provenance"]["compiler"].removeprefix("torch fake, cudnn 1"), it.get("paired")
missing = "No module named 'flash_attn_interface'"
assert said("fa3", pair=pair) == (missing, None) and said("fa3", 10) == ("FlashAttention 3 serves sm_90 only", None)
sys.path.insert(0, sys.argv[1])
assert said("fa3", pair=pair) == ("undefined symbol: made up", None)
sys.modules["flash_attn_interface"] = Fake()
importlib.metadata.version = lambda name: {"flash_attn_3": "3.1", "flash_attn_4": "4"}[name]
text, paired = said("fa3", pair=pair)
assert text == ", flash_attn_3 3.1" and len(paired) == 7, (text, paired)
assert [paired[name] for name in ("status", "reason", "kernel_p50_us", "p50_us", "ratio", "ratio_ci95", "blocks")] == [
    "pass", None, 1, 3, 3, [3, 3], 11], paired
sys.modules["flash_attn_interface"], sys.modules["fa3_wheels"] = None, Fake(__spec__=1)
sys.modules["fa3_wheels.xformers"] = Fake(ops=peers_torch.torch.ops.flash_attn_3, VERSION="FlashAttention 3 (made up)")
assert said("fa3") == (", FlashAttention 3 (made up)", None)
for function, text in ((flash_attn_func, ", flash_attn_4 4"), (refuse, "Refused()")):
    package = Fake(flash_attn_func=function)
    cute = Fake(interface=package)
    sys.modules.update({"flash_attn": Fake(cute=cute), "flash_attn.cute": cute, "flash_attn.cute.interface": package})
    assert said("fa4", 10) == (text, None)
END
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts/lib/peers python3 "$work/fake.py" "$work/broken"
}

@test "a library is a peer, alone and paired by fa_bench itself; fa3 stands for the package" {
    mv "$FA_BENCH" "$work/plain_stub"
    executable "$FA_BENCH" <<'END'
#!/usr/bin/env bash
set -eu
to=${*: -1} record='{"schema":"fa_bench.result/1","status":"pass","reason":null,"kernel":"fa3","check":{"passed":true},'
echo "$*" >>"$STUB/library_commands"
case " $* " in
    *" --library "*other.so*)
        echo '{"status":"infeasible","reason":"needs sm_90","timing":null,"provenance":{}}' >"$to"
        exit 3
        ;;
    *" --library "*) echo "$record"'"timing":{"p50_us":9},"provenance":{"compiler":"FlashAttention 3 2.8"}}' >"$to" ;;
    *" --vs library:"*)
        pair='{"p50_us":50,"other_p50_us":10,"ratio":0.2,"ratio_ci95":[0.19,0.21],"blocks":9}'
        echo "$record\"vs\":$pair}" >"$to"
        ;;
    *) exec "${0%/*}/plain_stub" "$@" ;;
esac
END
    touch "$work/fa3.so" "$work/other.so"
    run -0 peers --kernel one --library "$work/fa3.so" --library "$work/other.so" --only 512
    [[ ${lines[0]} == "2,8,512,64  one 50 us  best peer fa3 9 us  ratio 0.18, paired 0.2" ]]
    jq -e '.[0] | .peers.fa3 == 9 and .paired.fa3 == {ratio: 0.2, ci95: [0.19, 0.21], us: 10, kernel_us: 50} and
        .absent.other == "needs sm_90" and (.absent | has("fa3") | not)' "$work/p/peers.json"
    run peers --kernel one --library "$work/fa3.so" --library "$work/other.so" --only 512 # the row is known
    [ "$(grep -c -- '--library' "$STUB/library_commands")" -eq 2 ]
    peers --kernel one --library "$work/fa3.so" --no-pairs --only 128
    [ "$(grep -c -- '--vs library:' "$STUB/library_commands")" -eq 1 ]
    refused 2 "--library takes a file that can be read, a library's name" peers --library "$work/none.so"
}

@test "a library of the registry is a peer; a shape may have fewer K/V heads, other keys, heads side by side, a kind" {
    printf '%s\n' '--kv-heads 2 --seq 1 --seq-kv 512 --strides bshd' '--seq 1' >"$work/problems"
    echo 'lib 16 4 50' >>"$STUB/times"
    printf '%064d' 3 >"$STUB/source.lib"
    run -0 peers --kernel one --library lib
    [[ ${lines[0]} == "2,8/2,1:512,64  one 50 us"* ]]
    grep -q -- '--kernel lib .*--kv-heads 2 --seq-kv 512 --strides bshd' "$STUB/commands"
    grep -q -- '--kernel one --vs lib .*--kv-heads 2 --seq-kv 512 --strides bshd' "$STUB/commands"
    jq -e 'length == 2 and (.[0] | .kind == "decode" and .kv_heads == 2 and .seq_kv == 512 and .strides == "bshd" and
        .peers.lib == 50) and (.[1] | has("kind") or has("strides") | not)' "$work/p/peers.json"
}

# Everything is real but the GPU: a library that computes on the CPU stands for fa3, and a copy of it for the kernel.
@test "a library that is built is taken without being asked for, and timed and paired by fa_bench" {
    local tree=$work/tree
    mkdir -p "$tree/examples/library/build"
    ln -s "$PWD/scripts" "$tree/scripts"
    gcc -O1 -shared -fPIC -Iinclude -o "$tree/examples/library/build/fa3.so" tests/library/stub.c -ldl -lm
    gcc -O1 -shared -fPIC -Iinclude -Isrc -o "$work/libcuda.so.1" tests/library/host_cuda.c -ldl -lm
    cp "$tree/examples/library/build/fa3.so" "$work/ours.so"
    cat >"$FA_BENCH" <<'END'
#!/usr/bin/env bash
set -eu
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --kernel) options+=(--library "${0%/*}/ours.so"); shift ;;
        --cubin) shift ;;
        graph) options+=(event) ;; # the driver without a GPU has no graphs
        *) options+=("$1") ;;
    esac
    shift
done
LD_LIBRARY_PATH=${0%/*} exec "$REAL_BENCH" "${options[@]}"
END
    export REAL_BENCH=$PWD/fa_bench ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
    echo '--batch 1 --heads 2 --seq 32 --dim 16 --causal' >"$work/problems"
    "$tree/scripts/peers.sh" --problems "$work/problems" --kernel scalar --max-time 0.02 --out "$work/p.json"
    jq -e '.[0] | .status == "pass" and .kernel == "ours" and .peers.fa3 > 0 and .paired.fa3.ratio == 1 and
        .peers.cudnn == 15 and .libraries.fa3.name == "stub" and (.libraries.fa3.sha256 | length == 64)' "$work/p.json"
}

@test "peers from PyPI: what pip is asked for, the folder, its parts, and who takes it" {
    executable "$work/bin/python3" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$STUB/pip"
[[ $* == *"-m pip install"* ]] || exit 0
while [[ $1 != --target ]]; do shift; done
mkdir -p "$2/nvidia/cudnn/lib"
data=$2/flashinfer/data info=$2/flashinfer_python-1.2.dist-info
mkdir -p "$info" "$data/include/flashinfer" "$data"/cccl/{libcudacxx,cub,thrust} \
    "$data"/cutlass/{include,test,tools/util/include/cutlass/util}
printf '%s\n' 'Name: flashinfer-python' 'Version: 1.2' '' 'Version: of something else' >"$info/METADATA"
for name in libcudnn libcudnn_graph libcudnn_engines_runtime_compiled libcudnn_ops; do
    echo "$name" >"$2/nvidia/cudnn/lib/$name.so.9"
done
mkdir -p "$2"/{nvidia/cuda_runtime/lib,xformers/flash_attn_3,vllm/vllm_flash_attn,vllm/third_party/flashmla}
touch "$2"/{nvidia/cuda_runtime/lib/libcudart.so.12,xformers/flash_attn_3/_C.so,vllm/_flashmla_C.abi3.so} \
    "$2/vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so"
printf 'import torch\nimport vllm._flashmla_C\n' >"$2/vllm/third_party/flashmla/flash_mla_interface.py"
END
    PATH=$work/bin:$PATH scripts/evidence/peers_env.sh --out "$work/env" --cudnn 9.28.1.4 --python 3.13 --parts
    grep -q -- '--python-version 3.13 .*--platform manylinux_2_28_x86_64.* flash-attn-4>=4.0.0b1 ' "$STUB/pip"
    grep -q ' nvidia-cudnn-cu13==9.28.1.4$' "$STUB/pip"
    [ "$(ls "$work/env/cudnn")" = $'libcudnn.so.9\nlibcudnn_engines_runtime_compiled.so.9\nlibcudnn_graph.so.9' ]
    mkdir "$work/there"
    cat "$work/env.tar.xz."* | tar -C "$work/there" -xJ
    diff -r "$work/env" "$work/there"
    sed -i '2i echo "$PEERS_SITE $LD_LIBRARY_PATH" >"$STUB/env"' "$work/peers"
    peers --kernel one --env "$work/there"
    [[ $(cat "$STUB/env") == "$work/there/python $work/there/cudnn:"* ]]
    refused 2 "--env takes a folder of scripts/evidence/peers_env.sh, not '$work/bin'" peers --env "$work/bin"
    refused 2 "--only takes fa4, cudnn, flashinfer, fa3, flash_mla, not 'fa2'" scripts/evidence/peers_env.sh --only fa2
    run scripts/evidence/peers_env.sh --dry-run --only cudnn
    [[ $output == "pip install --target /"*" nvidia-cudnn-cu13" ]]
    # FlashInfer's headers, which stay where libraries are built.
    PATH=$work/bin:$PATH scripts/evidence/peers_env.sh --out "$work/env" --only cudnn,flashinfer --flashinfer 1.2 \
        --parts
    grep -q ' flashinfer-python==1.2$' "$STUB/pip"
    [ "$(cat "$work/env/flashinfer/version")" = 1.2 ]
    [ "$(cd "$work/env/flashinfer" && echo include/* cutlass/* cutlass/tools/util/*/*/* cccl/*)" = "include/flashinfer \
cutlass/include cutlass/tools cutlass/tools/util/include/cutlass/util cccl/cub cccl/libcudacxx cccl/thrust" ]
    [ -z "$(cat "$work/env.tar.xz."* | tar -tJ | sed -n '/^[.]\/flashinfer/p')" ]
    make -n -B -C examples/library flashinfer_fa3 FLASHINFER_DIR="$work/env/flashinfer" |
        grep -q 'FLASHINFER_VERSION="1.2"'
    # Out of other packages' wheels.
    PATH=$work/bin:$PATH scripts/evidence/peers_env.sh --out "$work/e" --only fa3,flash_mla --xformers 1.1 --vllm 2.2
    [[ $(tail -n 2 "$STUB/pip") == *" vllm==2.2"$'\n'*" xformers==1.1 nvidia-cuda-runtime-cu12" ]]
    [ "$(cd "$work/e/python" && echo flash_mla/*.so fa3_wheels/*/*.so*)" = "flash_mla/_flashmla_C.abi3.so \
fa3_wheels/vllm/_vllm_fa3_C.abi3.so fa3_wheels/xformers/_C.so fa3_wheels/xformers/libcudart.so.12" ]
    [ "$(cat "$work/e/python/fa3_wheels/"*/__init__.py | grep -c '^VERSION = .*(vLLM 2.2)\|(xformers 1.1)')" -eq 2 ]
    diff "$work/e/python/flash_mla/__init__.py" - <<<"import torch"$'\n'"from . import _flashmla_C
VERSION = 'FlashMLA (vLLM 2.2)'"
}

@test "--env: PyTorch runs the folder's cuDNN whole; parts of two are refused" {
    local part from
    mkdir -p "$work/env/cudnn" "$work/other"
    for part in libcudnn libcudnn_graph; do
        echo "int $part;" | gcc -shared -fPIC -x c - -o "$work/env/cudnn/$part.so.9"
    done
    cp "$work/env/cudnn/"* "$work/other/"
    sed -i '2i sed -nE "s|^[^/]*(/.*/libcudnn.*)|\\1|p" /proc/$$/maps | sort -u >"$STUB/mapped"' "$work/peers"
    peers --kernel one --env "$work/env"
    [ "$(cat "$STUB/mapped")" = "$(realpath "$work/env/cudnn/libcudnn.so.9" "$work/env/cudnn/libcudnn_graph.so.9")" ]
    # A server that gets the other half elsewhere, as by an RPATH, or all of it.
    mv "$work/peers" "$work/server"
    loads() { # FILES, with colons
        rm -rf "$work/p"
        printf '#!/usr/bin/env bash\nLD_PRELOAD=%s exec "%s" "$@"\n' "$1" "$work/server" | executable "$work/peers"
    }
    graph=cudnn/libcudnn_graph.so.9 other=$work/other/libcudnn_graph.so.9
    for from in "$work/env/$graph:$other" "$other"; do
        loads "$from"
        refused 4 "NOT-RUN: PyTorch has loaded cuDNN from $work/" peers --kernel one --env "$work/env"
        [ ! -e "$work/p/peers.json" ]
    done
    peers --kernel one # one cuDNN, wherever it is
    loads "$work/other/libcudnn.so.9:$work/env/$graph"
    peers --kernel one --env "$work/env" # its own libcudnn.so is not a part
}

@test "peers from PyPI: a package that another needs and that was not brought is named" {
    package() { # NAME NEED...
        local info=$work/env/${1//-/_}-1.0.dist-info
        mkdir -p "$info"
        printf '%s\n' "Metadata-Version: 2.1" "Name: $1" "Version: 1.0" "${@:2}" >"$info/METADATA"
    }
    needs() { python3 scripts/lib/peers/needs.py "$work/env" 3.12; }
    package one "Requires-Dist: Two_Parts>=1" "Requires-Dist: torch" "Requires-Dist: three; python_version < '3.11'" \
        "Requires-Dist: four; extra == 'more'"
    [ "$(needs)" = "one needs Two_Parts>=1" ]
    package two-parts
    [ -z "$(needs)" ]
}
