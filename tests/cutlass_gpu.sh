#!/usr/bin/env bash
# What launches of CUTLASS's Sm80 GEMM answer on this GPU (docs/cutlass.md). PASS or FAIL per case.
#
# usage: tests/cutlass_gpu.sh
# Builds two programs with nvcc (NVCC names it) in build/library, for sm_80 with sm_90 and for sm_75 alone, where they
# are not there; then runs them.
# Exit: 0 all passed, 1 one failed, 2 usage, 4 NOT-RUN (no GPU, no nvcc, no headers: scripts/setup.sh cutlass).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
parse_options "$@"
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
cutlass=${CUTLASS_DIR:-build/cutlass}/include
out=build/library
build() { # NAME -gencode...
    [[ ! -e $out/$1 || tests/library/cutlass_errors.cu -nt $out/$1 ]] || return 0
    command -v "$nvcc" >/dev/null || die 4 "NOT-RUN: no nvcc"
    [[ -e $cutlass ]] || die 4 "NOT-RUN: no headers: scripts/setup.sh cutlass"
    mkdir -p "$out"
    "$nvcc" -O1 -std=c++17 -w -I"$cutlass" "${@:2}" -o "$out/$1" tests/library/cutlass_errors.cu
}
build cutlass_errors -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
build cutlass_no_image -gencode arch=compute_75,code=sm_75
./fa_bench --version | grep -q '^gpu 0 ' || die 4 "NOT-RUN: no GPU"

failed=0
says() { # LINE
    if grep -qxF "$1" "$out/said"; then
        echo "PASS $1"
    else
        failed=1
        echo "FAIL no line '$1'"
    fi
}
gpu=$(./fa_bench --version | grep '^gpu 0 ')
"$out/cutlass_errors" >"$out/said"
cat "$out/said"
says "48 KiB: Success: cudaSuccess"
case $gpu in
    *sm_86* | *sm_89* | *sm_12*) says "144 KiB: Error Internal: cudaErrorInvalidValue" ;;
    *) says "144 KiB: Success: cudaSuccess" ;;
esac
says "240 KiB: Error Internal: cudaErrorInvalidValue"
says "64 KiB by hand: -: cudaErrorInvalidValue"
says "48 KiB after an error that nobody asked for: Error Internal: cudaSuccess"
"$out/cutlass_no_image" >"$out/said"
echo "for sm_75 alone:"
cat "$out/said"
says "240 KiB: Error Internal: cudaErrorNoKernelImageForDevice"
says "64 KiB by hand: -: cudaErrorNoKernelImageForDevice"
exit "$failed"
