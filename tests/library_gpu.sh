#!/usr/bin/env bash
# --library on a GPU: runtime-API and driver-API code, graphs, pairs, and libraries that fail. PASS or FAIL per case.
#
# usage: tests/library_gpu.sh
# Builds the libraries with nvcc (NVCC names it) in build/library, then runs them.
# Exit: 0 all passed, 1 one failed, 2 usage, 4 NOT-RUN (no GPU, no nvcc).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
parse_options "$@"
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
out=build/library
command -v "$nvcc" >/dev/null || die 4 "NOT-RUN: no nvcc"
./fa_bench --version | grep -q '^gpu 0 ' || die 4 "NOT-RUN: no GPU"
mkdir -p "$out"
make -s -C examples/library plain cublaslt NVCC="$nvcc" ARCH="${ARCH:-80 90a}"
cp examples/library/build/{plain,cublaslt}.so "$out"
gpu=(-gencode "arch=compute_80,code=sm_80" -gencode "arch=compute_90,code=sm_90")
"$nvcc" -O3 -std=c++17 -shared -Xcompiler -fPIC,-fvisibility=hidden -Iinclude "${gpu[@]}" -o "$out/bad.so" \
    tests/library/bad.cu
"$nvcc" -O3 -std=c++17 -fatbin -Iinclude "${gpu[@]}" -o "$out/plain.fatbin" examples/library/plain.cu
gcc -O2 -shared -fPIC -Iinclude -Isrc -DFATBIN="\"$out/plain.fatbin\"" -o "$out/driver.so" tests/library/driver.c -ldl

failed=0
holds() { # NAME CODE WORDS JQ COMMAND...: exit code, words on stderr, true of the record
    local name=$1 code=$2 text=$3 expression=$4 got=0
    shift 4
    rm -f "$out/r.json"
    "$@" --json "$out/r.json" --quiet 2>"$out/err" >/dev/null || got=$?
    if [[ $got =~ ^($code)$ && (-z $text || $(<"$out/err") =~ $text) ]] &&
        jq -e "$expression" "$out/r.json" >/dev/null; then
        echo "PASS $name"
    else
        failed=1
        echo "FAIL $name: exit $got, not $code, or no '$text', or not: $expression"
        sed 's/^/    /' "$out/err"
        jq -c '{status, reason, library, timing, vs, check}' "$out/r.json" 2>/dev/null | cut -c1-2000
    fi
}

bench=(./fa_bench --device cuda --max-time 0.3 --warmup-ms 200)
small=(--batch 1 --heads 2 --seq 256 --dim 64 --seeds 2)
timed='.status == "pass" and .timing.p50_us > 0'
for name in plain cublaslt driver; do
    library=(--library "$out/$name.so")
    holds "$name" 0 "" "$timed and (.library.sha256 | length == 64)" "${bench[@]}" "${library[@]}"
    holds "$name: tails, grouped heads, causal" 0 "" "$timed" "${bench[@]}" "${library[@]}" --batch 2 --heads 6 \
        --kv-heads 2 --seq 77 --seq-kv 130 --dim 72 --causal
    holds "$name: more rows than keys" 0 "" "$timed" "${bench[@]}" "${library[@]}" --seq 130 --seq-kv 77 --causal
    holds "$name: in a graph" 0 "" "$timed"' and .timing.method == "graph"' "${bench[@]}" "${library[@]}" --timing graph
done
holds "event timing" 0 "" '.status == "pass" and .timing.method == "event"' "${bench[@]}" --library "$out/plain.so" \
    --timing event
holds "cold L2" 0 "" "$timed" "${bench[@]}" --library "$out/plain.so" --l2 cold
holds "library against library" 0 "" '.vs.ratio > 0 and .vs.library.name == "cuBLASLt" and .vs.check.passed' \
    "${bench[@]}" --library "$out/plain.so" --vs "library:$out/cublaslt.so"
holds "kernel against library" 0 "" '.vs.ratio > 1 and .vs.kernel == "plain"' "${bench[@]}" --kernel mma \
    --vs "library:$out/plain.so"
holds "cublas through the same door" 0 "" "$timed"' and .library.name == "cuBLAS"' "${bench[@]}" --kernel cublas
holds "refusal" 3 "needs tensors aligned to 16 bytes" '.status == "infeasible"' "${bench[@]}" "${small[@]}" \
    --library "$out/cublaslt.so" --misalign 1

bad=("${bench[@]}" "${small[@]}" --library "$out/bad.so")
holds "the bad library without a fault" 0 "" "$timed" "${bad[@]}"
holds "wrong result" 1 "against cpu" '.status == "wrong" and .timing == null' env FA_BAD=wrong "${bad[@]}"
holds "host crash" 6 "signal 11 .* while checking" '.status == "error"' env FA_BAD=crash "${bad[@]}"
holds "fault on the GPU" 6 "ILLEGAL_ADDRESS|illegal memory access" '.status == "error"' env FA_BAD=fault "${bad[@]}"
holds "kernel that hangs" 5 "killed after 8 s while checking" '.status == "timeout"' env FA_BAD=hang "${bad[@]}" \
    --timeout 8
holds "after a hang" 0 "" "$timed" "${bad[@]}"
holds "a stream of its own" "1|6" "" '.status != "pass" and .timing == null' env FA_BAD=other_stream "${bad[@]}"
holds "memory at every call" 6 "fa_forward: .*captur" '.status == "error"' env FA_BAD=allocates "${bad[@]}" \
    --timing graph
exit "$failed"
