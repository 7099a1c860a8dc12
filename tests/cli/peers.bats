#!/usr/bin/env bats
# Our kernel beside its peers: what counts, what is written, what is NOT-RUN; with a made-up bench and a made-up
# PyTorch, and on real arrays where PyTorch is.
load stub_bench

# A torch that makes up what needs a GPU. $STUB/peers has the microseconds of each peer, or why it has none: fa2 20,
# cudnn 15, efficient 30, math no memory. A kernel of ours takes what $STUB/times says, in a pair 50, cudnn 45 there and
# the others 60; $STUB/pairs is what all pairs say, $STUB/die a length at which the work ends. $STUB/loads: libraries
# that it loads.
prepare() {
    make_stub
    mkdir "$work/fake"
    cat >"$work/fake/torch.py" <<'END'
import contextlib, ctypes, json, os, pathlib, sys
from types import SimpleNamespace as Fake
import peers_calls, peers_inputs, peers_torch
rows, stub = sys.modules["__main__"], pathlib.Path(os.environ["STUB"])
no_grad = contextlib.nullcontext
cuda = Fake(is_available=lambda: True, synchronize=lambda: None, empty_cache=lambda: None)
def said(name):
    return (stub / name).read_text().splitlines() if (stub / name).exists() else []
def add(name, *words):
    with (stub / name).open("a") as file:
        print(*words, file=file)
loaded = [ctypes.CDLL(path) for path in said("loads")]
add("env", os.environ.get("PEERS_SITE"), os.environ.get("LD_LIBRARY_PATH"))
run = rows.bench_run
def bench_run(words, folder):
    record = run(words, folder)
    option = lambda name: words[words.index(name) + 1] if name in words else None
    dtype, lengths = option("--dtype") or "fp16", (option("--lengths") or "").split(",")
    record["problem"] = {**peers_torch.DENSE, "dim_v": 64, "flop": 1e6, "bytes": 1e6, **record.get("problem", {}),
        "page_size": option("--page-size"), "dtype": dtype, "kv_dtype": dtype, "causal": "--causal" in words,
        "lengths": {"q": lengths, "kv": lengths} if lengths[0] else None}
    return record
class Inputs:
    def __init__(self, problem, seed, like=None):
        self.problem, self.dtype = problem, problem["dtype"]
        if [str(problem["seq_q"])] == said("die"):
            peers_torch.not_run("made up")
    def parity(self, output):
        return {"passed": output != 666, "max_abs_err": 0.5}
class Ours:
    def __init__(self, cubin, record, seed, like=None):
        name = pathlib.Path(cubin).read_text().strip()
        add("cubins", name)
        self.inputs, self.calls = Inputs(record["problem"], seed, like=like), 1
        self.graph = [float(line.split()[3]) for line in said("times") if line.startswith(f"{name} ")][-1]
    def parity(self):
        return self.inputs.parity(None)
    def pair(self, us, calls, arguments):
        us = {15: 45.0}.get(us, 60.0)
        return json.loads("".join(said("pairs")) or "null") or {"status": "pass", "reason": None, "kernel_p50_us": 50.0,
            "p50_us": us, "ratio": us / 50, "ratio_ci95": [1.19, 1.21], "blocks": 11}
def call_of(name):
    def make(inputs):
        found = [line.split(" ", 1)[1] for line in said("peers") if line.startswith(f"{name} ")] or ["No module"]
        if not found[0].isdigit():
            raise RuntimeError(found[0].replace("/", "\n"))
        return lambda: int(found[0])
    return make
peers_calls.CALLS.update({name: call_of(name) for name in peers_calls.CALLS})
peers_calls.version_of = lambda name: f"{name} 1.0"
rows.bench_run, peers_inputs.Inputs, peers_torch.Ours = bench_run, Inputs, Ours
peers_torch.captured, peers_torch.graph_samples = lambda call: (call(), 1), lambda us, calls, arguments: [us] * 11
peers_torch.device_record = lambda: {"name": "NVIDIA Stub", "arch": "sm_90"}
END
    printf '%s\n' 'fa2 20' 'cudnn 15' 'efficient 30' 'math memory/more of it' >"$STUB/peers"
    printf '%s\n' '# two problems' '--seq 512' '' '--batch 1 --seq 128 --causal' >"$work/problems"
    rows=$work/p/rows.jsonl
}

peers() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work/fake scripts/peers.sh --problems "$work/problems" --out "$rows" \
        --library none "$@"
}

says() { # COUNT OPTIONS...: so many lines, one for each row that is new and one for the means
    run peers "${@:2}"
    [ "${#lines[@]}" -eq "$1" ]
}

edit_rows() { # FILTER
    jq -c "$1" "$rows" >"$work/x" && mv "$work/x" "$rows"
}

both_rows() { # FILTER of each of the two rows; $p has its peers by their names
    jq -es "length == 2 and all(.[]; (.peers | map({(.peer): .}) | add) as \$p | $1)" "$rows"
}

@test "row, ratios of the best peer alone and in pairs, geometric means; why a peer has no time" {
    run -0 peers --kernel one
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == "--seq 512: pass, "*"; 50.0 us "*"; fa4 not_run: No module; cudnn 0.900; "*"; fa2 1.200; "* ]]
    [[ ${lines[1]} == "--batch 1 --seq 128 --causal: pass, "* ]]
    means="geometric mean of best peer / ours: 0.300 alone over 2 problems"
    [ "${lines[2]}" = "$means, 0.900 in pairs over 2 problems" ]
    both_rows '.kernel == "one" and .config.m == 16 and .p50_us == 50 and .solo_ratio == 0.3 and .ratio == 0.9 and
        ($p | map_values(.solo_us)) == {fa4: null, cudnn: 15, fa3: null, fa2: 20, efficient: 30, math: null} and
        ($p.cudnn | .ratio == 0.9 and .kernel_p50_us == 50 and .p50_us == 45 and .version == "cudnn 1.0") and
        $p.math.reason == "memory" and $p.fa3.status == "not_run"'
    grep -q -- '--kernel one --seq 512 .* --strides bshd' "$STUB/commands"
    # As the tables have it.
    jq -L scripts/lib -es 'include "record"; .[1] | by_peer | .batch == 2 and .seq == 128 and .causal and .us == 50 and
        .peers == {cudnn: 15, fa2: 20, efficient: 30} and .best_peer == "cudnn" and .ratio == 0.3 and
        .paired.fa2.ratio == 1.2 and .paired_ratio == 0.9 and .libraries.cudnn.version == "1.0"' "$rows"
    jq -L scripts/lib -rs --arg file x 'import "report" as m; m::peers' "$rows" >"$work/table"
    grep -q ' | over FlashAttention 2 1.0 | over cuDNN 1.0 | over the best | over the best, paired |$' "$work/table"
    grep -qxF '| 64 | causal | 1 | 0.4 | 0.3 | 0.3 | 0.9 |' "$work/table"
}

@test "the fastest of several kernels counts; a row without pairs is no answer, but for --no-pairs" {
    peers --kernel two,one
    [ "$(cat "$STUB/cubins")" = "$(printf '%s 16 4\n' two one two one)" ]
    both_rows '.kernel == "one" and .p50_us == 50'
    edit_rows 'if .options == "--seq 512" then del(.peers[].ratio) else . end'
    says 1 --kernel two,one --no-pairs
    run peers --kernel two,one
    [[ "${#lines[@]}" -eq 2 && ${lines[0]} == "--seq 512: "* ]]
    both_rows '$p.cudnn.ratio == 0.9'
    rm "$rows"
    run -0 peers --kernel one --no-pairs
    [[ ${lines[0]} == *"; cudnn 0.300 alone; "* && ${lines[2]} == "$means"*"over 2 problems" ]]
    both_rows '.ratio == null and .solo_ratio == 0.3 and all($p[]; has("ratio") | not)'
}

@test "without --kernel the last rung that serves the problem" {
    BAD_ARGS='--kernel two --seq 512' BAD_STATUS=infeasible run -0 peers
    jq -es 'map([.kernel, .p50_us]) == [["one", 50], ["two", 90]]' "$rows"
}

@test "lengths: FlashAttention 2 where the line names a kernel, FlashInfer by name; equal ones: ours without them" {
    printf '%s\n' '--kernel two --lengths 9,9' '--lengths 9,8' >"$work/problems"
    run -0 peers --kernel one
    jq -es 'map([.peers[].peer]) == [["fa4", "cudnn", "fa3", "fa2", "dense"], ["fa4", "cudnn", "fa3"]] and
        (.[0] | .ratio == 0.9 and (.peers[4] | .version == "two 16x64" and .solo_us == 90 and .ratio == 1.2))' "$rows"
    grep -q -- '^--kernel two --batch 2 --seq 512 --seq-kv 512 --seeds 1' "$STUB/commands"
    run -0 peers --kernel one --peers fa4,flashinfer
    jq -es 'map([.peers[].peer]) == [["fa4", "flashinfer"], ["fa4", "flashinfer"]]' "$rows"
}

@test "a wrong kernel has no ratio and fails the run; an older file, or a damaged one, is refused" {
    echo 'one 16 4' >"$STUB/wrong"
    run -1 peers --kernel one
    [ ! -e "$STUB/cubins" ]
    [[ ${lines[0]} == *": wrong, "*"; made up" && $output == *"no ratio"* ]]
    jq -es 'all(.[]; .p50_us == null and .ratio == null and .status == "wrong" and .peers == [])' "$rows"
    cp evidence/h200/peers_fa4.json "$rows"
    refused 2 "options is missing" peers --kernel one
}

@test "no GPU, no PyTorch, no record: NOT-RUN, exit 4, or 6" {
    if ! command -v nvidia-smi >/dev/null; then
        FA_BENCH=$PWD/fa_bench run -4 peers
        [[ $output == *"NOT-RUN: no GPU here"* ]]
    fi
    echo 'raise ImportError("made up")' >"$work/fake/torch.py"
    run -4 peers
    [[ $output == *"NOT-RUN: no PyTorch here: made up"* ]]
    PYTHONPATH=$work/fake run -4 scripts/lib/peers/peers_torch.py --dump "$work/d"
    [[ $output == *"NOT-RUN: no PyTorch here"* ]]
    rm -r "$work/fake" && prepare
    mv "$FA_BENCH" "$work/plain"
    printf '#!/bin/sh\ncase "$*" in *--cubin*) exit 9 ;; esac\nexec "%s" "$@"\n' "$work/plain" | executable "$FA_BENCH"
    run -6 peers
    [[ $output == *"no record of: $FA_BENCH --kernel two --seq 512 "* ]]
    [ ! -e "$work/p/rows.jsonl" ]
}

@test "--dry-run shows each committed problem" {
    [ "$(scripts/peers.sh --dry-run | wc -l)" -eq 41 ]
    (cd tests && ../scripts/peers.sh --dry-run --problems ../scripts/lib/peers/dense.txt) |
        diff - <(scripts/peers.sh --dry-run) # paths are below the caller's folder
    run -0 scripts/peers.sh --dry-run --only causal
    [ "${#lines[@]}" -eq 20 ]
    scripts/peers.sh --dry-run --problems dense,caches,features,paged,fp8,backward |
        sed '/--kernel/!s/^/--kernel wgmma /' >"$work/runs"
    [ "$(wc -l <"$work/runs")" -ge 150 ]
    run -0 ./fa_bench --select --arch sm_90a --runs "$work/runs"
}

@test "bad arguments are refused" {
    refused 2 "no kernel 'nosuch'" scripts/peers.sh --kernel nosuch
    refused 2 "--problems takes lines of problem options, not 'gh100" \
        scripts/peers.sh --problems tests/golden/ncu_query.txt
    refused 2 "--problems takes a file that can be read or a list's name" scripts/peers.sh --problems "$work"
    refused 2 "--out is of one list" scripts/peers.sh --problems paged,fp8 --out "$work/x"
    refused 2 "no problem of" scripts/peers.sh --only 77777
    refused 2 "--kernel is this script's own" scripts/peers.sh -- --kernel one
    refused 2 "unknown option one" scripts/peers.sh one
    refused 2 "--peers takes names" scripts/peers.sh --peers torch
    refused 2 "--max-time takes seconds" scripts/peers.sh --max-time soon
    refused 2 "--library takes a file that can be read, a library's name" peers --library "$work/none.so"
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

@test "a library is a peer, alone and paired by fa_bench itself; fa3 stands for the package" {
    mv "$FA_BENCH" "$work/plain_stub"
    executable "$FA_BENCH" <<'END'
set -eu
to=$(sed 's/.*--json //; s/ .*//' <<<"$*")
record='{"schema":"fa_bench.result/1","status":"pass","reason":null,"kernel":"fa3","check":{"passed":true},'
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
    [[ ${lines[0]} == *"; fa3 0.200; other infeasible: needs sm_90; fa4 not_run: "* ]]
    jq -es '.[0] | .solo_ratio == 0.18 and .ratio == 0.2 and (.peers | map(select(.peer == "fa3"))) == [.peers[0]] and
        (.peers[0] | .solo_us == 9 and .p50_us == 10 and .kernel_p50_us == 50 and .ratio_ci95 == [0.19, 0.21] and
            .blocks == 9 and .version == "FlashAttention 3 2.8")' "$rows"
    run peers --kernel one --library "$work/fa3.so" --library "$work/other.so" --only 512 # the row is known
    [ "$(grep -c -- '--library' "$STUB/library_commands")" -eq 2 ]
    peers --kernel one --library "$work/fa3.so" --no-pairs --only 128
    [ "$(grep -c -- '--vs library:' "$STUB/library_commands")" -eq 1 ]
}

@test "a library of the registry is a peer, on dense problems alone; our wrong result beside it is ours" {
    printf '%s\n' '--seq 1 --seq-kv 512 --strides packed' '--seq 9 --page-size 16' >"$work/problems"
    echo 'lib 16 4 60' >>"$STUB/times"
    printf '%064d' 3 >"$STUB/source.lib"
    run -0 peers --kernel one --library lib
    [[ ${lines[0]} == "--seq 1 --seq-kv 512 --strides packed: pass, "*"; lib 1.200; fa4 "* ]]
    grep -q -- '--kernel lib --seq 1 --seq-kv 512 --strides packed' "$STUB/commands"
    grep -q -- '--kernel one --vs lib --seq 1 --seq-kv 512 --strides packed' "$STUB/commands"
    run grep -- '--strides packed.*--strides\|--vs lib --seq 9' "$STUB/commands"
    [ -z "$output" ]
    both_rows 'if .problem.page_size then $p | keys == ["contiguous", "cudnn", "fa3", "fa4", "flashinfer"] else
        $p.lib.solo_us == 60 end'
    jq -L scripts/lib -es 'include "record"; .[0] | by_peer | .kind == "decode" and .seq_kv == 512' "$rows"
    BAD_ARGS='--vs lib' BAD_STATUS=wrong run -1 peers --kernel one --library lib --again
    [[ ${lines[0]} == *": wrong, "*"; beside lib: our kernel: made up" ]]
}

# Everything is real but the GPU: a library that computes on the CPU stands for fa3, and a copy of it for the kernel.
@test "a library that is built is taken without being asked for, and timed and paired by fa_bench" {
    local tree=$work/tree
    mkdir -p "$tree/examples/library/build"
    ln -s "$PWD/scripts" "$tree/scripts"
    gcc -O1 -shared -fPIC -Iinclude -o "$tree/examples/library/build/fa3.so" tests/library/stub.c -ldl -lm
    gcc -O1 -shared -fPIC -Iinclude -Isrc -o "$work/libcuda.so.1" tests/library/host_cuda.c -ldl -lm
    cp "$tree/examples/library/build/fa3.so" "$work/ours.so"
    executable "$FA_BENCH" <<'END'
set -eu
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --kernel) options+=(--library "${0%/*}/ours.so"); shift ;;
        --cubin) echo 'one 16 4' >"$2"; shift ;;
        graph) options+=(event) ;; # the driver without a GPU has no graphs
        *) options+=("$1") ;;
    esac
    shift
done
LD_LIBRARY_PATH=${0%/*} exec "$REAL_BENCH" "${options[@]}"
END
    export REAL_BENCH=$PWD/fa_bench ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
    echo '--batch 1 --heads 2 --seq 32 --dim 16 --causal' >"$work/problems"
    PYTHONPATH=$work/fake "$tree/scripts/peers.sh" --problems "$work/problems" --kernel scalar --max-time 0.02 \
        --out "$rows"
    jq -e '.status == "pass" and .kernel == "ours" and (.peers[0] | .peer == "fa3" and .solo_us > 0 and .ratio == 1 and
        .version == "stub 1.2" and (.sha256 | length == 64)) and .peers[2].solo_us == 15' "$rows"
}

@test "peers from PyPI: what pip is asked for, the folder, its parts, and who takes it" {
    executable "$work/bin/python3" <<'END'
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
    local part
    mkdir -p "$work/env/cudnn" "$work/half/cudnn" "$work/other"
    for part in libcudnn libcudnn_graph; do
        echo "int $part;" | gcc -shared -fPIC -x c - -o "$work/env/cudnn/$part.so.9"
    done
    cp "$work/env/cudnn/"* "$work/other/"
    cp "$work/env/cudnn/libcudnn.so.9" "$work/half/cudnn/"
    peers --kernel one --env "$work/env"
    rm "$rows"
    # PyTorch gets the other half elsewhere, as by an RPATH, or all of it.
    echo "$work/other/libcudnn_graph.so.9" >"$STUB/loads"
    refused 4 "loaded cuDNN from $work/env/cudnn and $work/other, not $work/env/cudnn alone" \
        peers --kernel one --env "$work/env"
    refused 4 "loaded cuDNN from $work/other, not $work/half/cudnn alone" peers --kernel one --env "$work/half"
    [ ! -e "$rows" ]
    peers --kernel one # one cuDNN, wherever it is
    echo "$work/other/libcudnn.so.9" >"$STUB/loads"
    peers --kernel one --again --env "$work/env" # its own libcudnn.so is not a part
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

# bats file_tags=slow
@test "a pairing that is refused has a reason and no ratio; a kernel that is wrong in one is wrong" {
    echo '{"status": "not_run", "reason": "ABI 9"}' >"$STUB/pairs"
    run -0 peers --kernel one
    [[ ${lines[0]} == *"; cudnn 0.300 alone, ABI 9; "* && ${lines[2]} == *" 0.300 alone over 2 problems" ]]
    both_rows '.ratio == null and .solo_ratio == 0.3 and $p.fa2.reason == "ABI 9"'
    says 1 --kernel one # an answer
    echo '{"status": "wrong", "reason": "our kernel differs from FP64 by 1"}' >"$STUB/pairs"
    run -1 peers --kernel one --again
    [[ ${lines[0]} == *"; beside cudnn: our kernel differs from FP64 by 1" ]]
    both_rows '.status == "wrong" and (has("p50_us") or has("ratio") or has("solo_ratio") | not)'
    run -1 peers --kernel one # no answer
    [ "${#lines[@]}" -eq 3 ]
}

@test "a peer that gives a wrong result has no time that counts; one that came later is asked with --again" {
    printf 'fa3 %s\n' 14 >>"$STUB/peers"
    sed -i 's/^fa2 .*/fa2 666/' "$STUB/peers"
    peers --kernel one
    both_rows '.solo_ratio == 0.28 and $p.fa3.solo_us == 14 and
        ($p.fa2 | .status == "wrong" and .reason == "differs from FP64 by 0.5" and .wrong_ratio == 1.2 and
        (has("solo_us") or has("ratio") | not))'
    echo 'fa4 10' >>"$STUB/peers"
    says 1 --kernel one
    peers --kernel one --again
    both_rows '.solo_ratio == 0.2'
    edit_rows 'del(.peers[] | select(.peer == "fa3"))'
    says 1 --kernel one --peers cudnn,math # it was not asked for
    says 3 --kernel one --peers fa3
    both_rows '($p | keys) == ["fa3"]'
}

@test "a stopped run goes on; an edited source is measured anew; options behind -- make another problem" {
    echo 128 >"$STUB/die"
    run -4 peers --kernel one
    [[ $output == *"NOT-RUN: made up"* ]]
    jq -es 'length == 1' "$rows"
    rm "$STUB/die"
    run -0 peers --kernel one
    [[ "${#lines[@]}" -eq 2 && ${lines[1]} == *"over 2 problems" ]] # one problem and the mean of both
    says 1 --kernel one
    printf '%064d' 4 >"$STUB/source.one"
    sed -Ei 's/"op": ?"forward", ?//' "$rows" # rows of an older bench
    says 3 --kernel one
    says 3 --kernel one --again
    both_rows 'true'
    run -0 peers --kernel one -- --dtype bf16
    [[ ${lines[0]} == "--seq 512 --dtype bf16: pass"* ]]
    jq -es 'map(.problem.dtype) == ["fp16", "fp16", "bf16", "bf16"]' "$rows"
    grep -q -- '--causal --dtype bf16 ' "$STUB/commands"
    jq -n -L scripts/lib --arg file f --argjson kinds '{"one": "hand"}' --argjson values false \
        'import "evidence" as m; m::candidates' "$rows" |
        jq -se 'length == 4 and (map(.made_of[0].options[0] | contains("--dtype bf16")) | index(true)) == 2'
}
