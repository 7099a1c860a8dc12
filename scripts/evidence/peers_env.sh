#!/usr/bin/env bash
# Puts the peers' wheels from PyPI into a folder, to be carried to a machine that has no network.
#
# usage: scripts/evidence/peers_env.sh [options]
#   --out DIR        default build/peers: DIR/python has FlashAttention 4 (flash-attn-4 and what it needs but PyTorch),
#                    DIR/cudnn the three libraries of cuDNN (nvidia-cudnn-cu13) that its attention loads;
#                    with --only flashinfer DIR/flashinfer has FlashInfer's headers, which examples/library builds from,
#                    and DIR/python its package, which compiles what it runs, and cuDNN's frontend;
#                    with --only fa3,flash_mla DIR/python has FlashAttention 3 for sm_90a out of the wheels of xformers
#                    and vLLM, and FlashMLA out of vLLM's
#   --python X.Y     Python of the machine that will use them (default 3.12)
#   --cudnn VERSION  default: the newest
#   --fa4 VERSION    of flash-attn-4; default: the newest
#   --flashinfer VERSION    default: the newest
#   --xformers VERSION      default 0.0.34: the last with FlashAttention 3; for PyTorch 2.10 and later
#   --vllm VERSION   compiled for one PyTorch; default 0.25.1, for 2.11
#   --only LIST      of fa4, cudnn, flashinfer, fa3, flash_mla (default: fa4,cudnn)
#   --parts          DIR as a compressed archive, too, in parts of at most 60 MiB: DIR.tar.xz.aa and so on
#   --dry-run        print what pip would be asked for
# For x86_64 Linux and CUDA 13. scripts/peers.sh and scripts/evidence/pairs.sh take the folder: --env DIR.
# Exit: 0, 1 pip failed, 2 usage, 4 not run (no pip).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([out]=build/peers [python]=3.12 [cudnn]='' [fa4]='' [flashinfer]='' [only]='fa4,cudnn'
    [xformers]=0.0.34 [vllm]=0.25.1)
flag=([parts]=0 [dry-run]=0)
parse_options "$@"
out=${opt[out]%/}
[[ ${opt[python]} =~ ^3[.][0-9]+$ ]] || die 2 "--python takes a version such as 3.12, not '${opt[python]}'"
peer='fa4|cudnn|flashinfer|fa3|flash_mla'
[[ ${opt[only]} =~ ^($peer)(,($peer))*$ ]] || die 2 "--only takes ${peer//|/, }, not '${opt[only]}'"

pip=(python3 -m pip install --quiet --root-user-action ignore --no-compile --no-deps --upgrade
    --only-binary=:all: --implementation cp --python-version "${opt[python]}")
for glibc in 39 35 34 31 28 27 24 17; do
    pip+=(--platform "manylinux_2_${glibc}_x86_64")
done
pip+=(--platform manylinux2014_x86_64)
version=${opt[fa4]:+==${opt[fa4]}} # a bound with a beta in it: there are only betas
fa4=("flash-attn-4${version:->=4.0.0b1}" nvidia-cutlass-dsl nvidia-cutlass-dsl-libs-base
    nvidia-cutlass-dsl-libs-core nvidia-cutlass-dsl-libs-cu13 quack-kernels apache-tvm-ffi einops torch-c-dlpack-ext
    typing_extensions)
cudnn=("nvidia-cudnn-cu13${opt[cudnn]:+==${opt[cudnn]}}")
flashinfer=("flashinfer-python${opt[flashinfer]:+==${opt[flashinfer]}}")
with_flashinfer=(apache-tvm-ffi ninja nvidia-cudnn-frontend nvidia-ml-py packaging tqdm)

get() { # FOLDER PACKAGE...
    echo "pip install --target $1 ${*:2}"
    [[ ${flag[dry-run]} -eq 0 ]] || return 0
    "${pip[@]}" --target "$1" "${@:2}" || die 1 "pip could not get ${*:2}"
}

[[ ${flag[dry-run]} -eq 1 ]] || python3 -m pip --version >/dev/null 2>&1 || die 4 "NOT-RUN: no pip for python3"
if [[ ${opt[only]} == *fa4* ]]; then
    get "$out/python" "${fa4[@]}"
    if [[ ${flag[dry-run]} -eq 0 ]]; then # pip is told of each package by name: a new version may need another
        missing=$(python3 "$lib/peers/needs.py" "$out/python" "${opt[python]}")
        [[ -z $missing ]] || die 1 "missing in $out/python: ${missing//$'\n'/; }"
    fi
fi
make_work
if [[ ${opt[only]} == *flashinfer* ]]; then
    get "$work/wheel" "${flashinfer[@]}"
    if [[ ${flag[dry-run]} -eq 0 ]]; then
        rm -rf "$out/flashinfer"
        mkdir -p "$out/flashinfer/cutlass/tools/util" "$out/flashinfer/cccl"
        cp -r "$work/wheel/flashinfer/data/include" "$out/flashinfer/"
        cp -r "$work/wheel/flashinfer/data/cutlass/include" "$out/flashinfer/cutlass/"
        cp -r "$work/wheel/flashinfer/data/cutlass/tools/util/include" "$out/flashinfer/cutlass/tools/util/"
        cp -r "$work/wheel/flashinfer/data/cccl"/{libcudacxx,cub,thrust} "$out/flashinfer/cccl/"
        sed -n '/^Version: /{s///p;q}' "$work/wheel"/flashinfer_python-*.dist-info/METADATA >"$out/flashinfer/version"
        rm -rf "$work/wheel/flashinfer/data/csrc"/{cake_*,fused_moe,gdn*,kda*} "$out"/python/flashinfer*
        mkdir -p "$out/python"
        mv "$work/wheel"/flashinfer* "$out/python/"
    fi
    get "$out/python" "${with_flashinfer[@]}"
fi
if [[ ${opt[only]} == *cudnn* ]]; then
    get "$work" "${cudnn[@]}"
    if [[ ${flag[dry-run]} -eq 0 ]]; then
        mkdir -p "$out/cudnn"
        for library in libcudnn libcudnn_graph libcudnn_engines_runtime_compiled; do
            mv -f "$work/nvidia/cudnn/lib/$library.so.9" "$out/cudnn/"
        done
    fi
fi
wheel=$work/wheels vllm=$work/wheels/vllm
[[ ! ${opt[only]} =~ fa3|flash_mla ]] || get "$wheel" "vllm==${opt[vllm]}"
[[ ${opt[only]} != *fa3* ]] || get "$wheel" "xformers==${opt[xformers]}" nvidia-cuda-runtime-cu12
[[ ${flag[dry-run]} -eq 0 ]] || exit 0
take() { # FOLDER VERSION FILE...: files out of wheels as a Python package; its source is standard input
    mkdir -p "$out/python/$1"
    mv -f "${@:3}" "$out/python/$1/"
    { cat && echo "VERSION = '$2'"; } >"$out/python/$1/__init__.py"
}
if [[ ${opt[only]} == *fa3* ]]; then # xformers' is linked with CUDA 12's runtime, which stands beside PyTorch's
    take fa3_wheels/xformers "FlashAttention 3 (xformers ${opt[xformers]})" "$wheel/xformers/flash_attn_3/_C.so" \
        "$wheel/nvidia/cuda_runtime/lib/libcudart.so.12" <<<'import ctypes, torch
ctypes.CDLL(__file__.replace("__init__.py", "libcudart.so.12"))
from . import _C
ops = torch.ops.flash_attn_3'
    take fa3_wheels/vllm "FlashAttention 3 (vLLM ${opt[vllm]})" "$vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so" \
        <<<'import torch; from . import _vllm_fa3_C; ops = torch.ops._vllm_fa3_C'
fi
[[ ${opt[only]} != *flash_mla* ]] || take flash_mla "FlashMLA (vLLM ${opt[vllm]})" "$vllm/_flashmla_C.abi3.so" \
    < <(sed 's/^import vllm[.]_fl/from . import _fl/' "$vllm/third_party/flashmla/flash_mla_interface.py")
du -sh "$out"/*
if [[ ${flag[parts]} -eq 1 ]]; then
    rm -f "$out".tar.xz.*
    tar -C "$out" --exclude ./flashinfer -c . | xz -T0 -6 | split -b 60M - "$out.tar.xz."
    ls -sh "$out".tar.xz.*
    echo "there: mkdir -p $out && cat $out.tar.xz.* | tar -C $out -xJ"
fi
