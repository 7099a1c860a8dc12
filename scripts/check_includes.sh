#!/usr/bin/env bash
# Includes in src/ point one way: a stage includes only earlier stages (DESIGN.md section 8).
set -euo pipefail

if [[ ${1:-} == --help ]]; then
    echo "usage: scripts/check_includes.sh    exit 1 and a line per include that points to a later stage"
    exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Rank of a file: the stage it belongs to. A new file of a stage starts with the stage's name or is listed beside it.
stages=(
    "base" "options" "runs" "problem" "tensors npy" "registry" "spec"
    "cache compile_log cubin nvrtc compile"
    "cuda_api lib_open cublas_api cudnn_api lib_ device_cuda device_emu emu device"
    "buffers" "reference" "localise rules" "check" "stats" "throughput timing compare" "result" "candidate" "report" "child" "main"
)
rank_of() {
    local name=$1 i prefix best=-1 length=0
    for i in "${!stages[@]}"; do
        for prefix in ${stages[i]}; do
            if [[ $name == "$prefix"* && ${#prefix} -gt $length ]]; then
                best=$i
                length=${#prefix}
            fi
        done
    done
    echo "$best"
}

bad=0
while IFS=: read -r file included; do
    from=$(basename "$file"); from=${from%.*}
    [[ $file == src/emu/* ]] && from=emu
    to=$(basename "$included"); to=${to%.*}
    [[ $included == *emu* ]] && to=emu
    # shellcheck disable=SC2310
    a=$(rank_of "$from"); b=$(rank_of "$to")
    if [[ $a -lt 0 ]]; then
        echo "$file belongs to no stage (scripts/check_includes.sh lists them)"; bad=1
    elif [[ $b -gt $a ]]; then
        echo "$file includes $included, a later stage"; bad=1
    fi
done < <(grep -HoE '^#include "[^"]+"' src/*.[ch] src/emu/*.[ch] 2>/dev/null |
    sed -E 's/#include "([^"]+)"/\1/' | grep -vE ':(\.\./include/fa_params\.h|\.\./kernels/kernels\.def|git_version\.h|.*\.def|(\.\./)*kernels/layout\.cuh)$')

# Pure stages know nothing of CUDA.
for file in src/{options,runs,problem,registry,spec,stats,rules,localise,reference,tensors,report,report_json}.[ch]; do
    if [[ -e $file ]] && grep -nE '#include [<"](cuda|cuda_api|nvrtc_api|device_cuda)\.h' "$file"; then
        echo "$file is pure and includes a CUDA header"; bad=1
    fi
done
exit $bad
