#!/usr/bin/env bash
# The wrong kernels of tests/wrong/wrong.tsv, each with one fault: how many an ordinary run catches, and how many the
# gate. On the emulator, or with --gpu on a GPU.
#
# usage: tests/wrong/run.sh [options]
#   --gpu           on the GPU: those, too, that only a GPU is large enough to show
#   --only NAME     this kernel alone (repeatable)
#   --ordinary      the ordinary run alone, without the gate
#   --no-ordinary   the gate alone
#   --control       the kernels that the wrong ones are made from, instead: the gate must let each pass
#   --draws N       of the gate (default: 6)
#   --seed S        of the gate's draws (default: the gate's own)
#   --seconds SEC   a kernel, for the gate (default: 0, none)
#   --jobs N        kernels at once (default: the cores)
#   --json FILE     write the summary to FILE, after each kernel: a run that is cut off leaves what it had
#   --resume FILE   such a summary, which may be that of --json: kernels that it has, on this device and with the same
#                   text and tile, are not tried again
# A line per kernel, then the counts. The gate stops at the first case that fails. After SIGTERM no kernel is begun.
# Exit: 0 the gate caught all (--ordinary: whatever it caught), 1 one passed the gate (--control: failed it), 2 usage,
# 4 no binary, no GPU, or cut off. FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([draws]=6 [seed]='' [seconds]=0 [jobs]=$(nproc) [json]='' [resume]='')
flag=([gpu]=0 [ordinary]=0 [no-ordinary]=0 [control]=0)
many=([only]='')
parse_options "$@"
need_number 0 draws seconds
need_number 1 jobs
[[ -z ${opt[resume]} ]] || is_input "${opt[resume]}" || die 2 "--resume takes a summary of --json, not '${opt[resume]}'"
need_bench
need_python
device=emu device_name='the emulator'
if [[ ${flag[gpu]} -eq 1 ]]; then
    device=cuda device_name=$(gpu_name "$bench")
    [[ -n $device_name ]] || die 4 "NOT-RUN: no GPU here"
fi
make_work
# Results on the emulator count, not machine code; a mistake of these kernels is in their results.
printf '#!/usr/bin/env bash\n[[ "$* " != *"--device emu "* ]] || set -- "$@" --no-ptxas\nexec %q "$@"\n' \
    "$(realpath "$bench")" >"$work/bench"
chmod +x "$work/bench"
export FA_BENCH=$work/bench
export OMP_NUM_THREADS=1 # the cores are full of other kernels
mapfile -t only < <(values_of only)

# The options that a kernel needs, small for the emulator; then those of its row.
tile_of() { # BASE [OPTIONS]
    case ${1%% *} in
        plain) echo "--m 64" ;;
        mma_plain) echo "--m 32 --n 32 --warps 2 --stages 2" ;;
        tests/wrong/split_keys) echo "--m 8" ;;
        tests/wrong/block_row) echo "--m 1 --warps 2" ;;
        kernels/scalar) echo "--m 8 --n 1 --warps 8 --vec 2" ;;
        kernels/light) echo "--m 32 --n 64 --warps 8 --vec 8" ;;
        kernels/wmma) echo "--m 64 --n 64 --warps 8 --stages 2" ;;
        kernels/wmma_qk) echo "--m 32 --n 64 --warps 4 --stages 2" ;;
        kernels/mma) echo "--m 64 --n 64 --warps 4 --stages 2 --swizzle 1" ;;
        kernels/mma_decode) echo "--m 16 --n 16 --warps 4 --stages 2" ;;
        kernels/wgmma) echo "--arch sm_90a --m 128 --n 128 --warps 8 --stages 2 --swizzle 1" ;;
        kernels/wgmma_decode) echo "--arch sm_90a --m 64 --n 64 --warps 4 --stages 2 --swizzle 1" ;;
        kernels/wgmma_small) echo "--arch sm_90a --m 64 --n 64 --warps 8 --stages 2 --swizzle 1" ;;
    esac
    [[ $1 != *' '* ]] || echo "${1#* }"
}

# Caught: the run ends with a wrong result or with an error of the kernel's.
ordinary() { # FILE TILE DTYPE
    local code=0 tile
    read -r -a tile <<<"$2"
    "$FA_BENCH" --source "$1" "${tile[@]}" --dtype "$3" --device "$device" --batch 2 --heads 4 --seq 128 \
        --timing none --quiet >/dev/null 2>&1 || code=$?
    [[ $code -eq 1 || $code -eq 6 ]]
}
# Caught: a case failed, and not because the file does not compile.
gate() { # FILE TILE DTYPE OUT
    local code=0 tile more=()
    read -r -a tile <<<"$2"
    [[ $device == emu ]] || more+=(--require-gpu)
    [[ -z ${opt[seed]} ]] || more+=(--seed "${opt[seed]}")
    scripts/ci_gate.sh --source "$1" --dtype "$3" --draws "${opt[draws]}" --fail-fast --shrink 0 --jobs 1 \
        --seconds "${opt[seconds]}" "${more[@]}" --out "$4" -- "${tile[@]}" >"$4.txt" 2>&1 || code=$?
    [[ $code -eq 1 ]] && jq -es 'any(.[]; .verdict == "failed" and (.text | startswith("compile_error") | not))' \
        "$4/cases.jsonl" >/dev/null
}
try() { # NAME FILE WHERE TILE SHA256
    local by_run=null by_gate=null first='' dtype=fp16
    [[ $3 != bf16 ]] || dtype=bf16
    [[ ${flag[no-ordinary]} -eq 1 ]] || by_run=$(if ordinary "$2" "$4" $dtype; then echo true; else echo false; fi)
    if [[ ${flag[ordinary]} -eq 0 ]]; then
        by_gate=$(if gate "$2" "$4" $dtype "$work/$1"; then echo true; else echo false; fi)
        first=$(jq -r 'select(.verdict == "failed") | "\(.tool) \(.args)"' "$work/$1/cases.jsonl" 2>/dev/null |
            head -n 1)
    fi
    jq -nc --arg name "$1" --argjson ordinary "$by_run" --argjson gate "$by_gate" --arg problem "${first# }" \
        --arg sha256 "$5" '$ARGS.named' >"$work/$1.part"
    mv "$work/$1.part" "$work/$1.case"
    printf '%-40s ordinary run %-5s gate %-5s %s\n' "$1" "$by_run" "$by_gate" "${first# }"
}
summarise() {
    find "$work" -maxdepth 1 -name '*.case' -exec cat {} + | lib=tests jqf summaries/wrong -s \
        --arg device "$device" --arg gpu "$device_name" --argjson gate "$((1 - flag[ordinary]))" \
        --argjson seconds "$SECONDS" --rawfile names "$work/names" >"$work/summary.json"
    [[ -z ${opt[json]} ]] || replace_file "${opt[json]}" <"$work/summary.json"
}

names=("${only[@]}")
[[ ${flag[control]} -eq 0 ]] || names=(--bases)
python3 tests/wrong/make.py "$work/kernels" "${names[@]}" |
    if [[ $device == cuda ]]; then cat; else awk '$3 != "gpu"'; fi >"$work/list"
cut -d' ' -f1 "$work/list" >"$work/names"
declare -A settled
if [[ -n ${opt[resume]} ]]; then
    earlier=$(cat "${opt[resume]}")
    while IFS=$'\t' read -r what case; do settled[$what]=$case; done < <(lib=tests jqf summaries/wrong_settled -r \
        --arg gpu "$device_name" --argjson run "$((1 - flag[no-ordinary]))" --argjson gate "$((1 - flag[ordinary]))" \
        <<<"$earlier")
    [[ ${#settled[@]} -eq 0 ]] || SECONDS=$(jq '.seconds' <<<"$earlier")
fi
while read -r name file where base; do
    options=$(tile_of "$base" | xargs)
    sha256=$({ echo "$options"; cat "$file"; } | sha256sum | cut -d' ' -f1)
    if [[ -n ${settled["$name $sha256"]:-} ]]; then
        echo "${settled["$name $sha256"]}" >"$work/$name.case"
    else
        echo "$name $file $where $sha256 $options"
    fi
done <"$work/list" >"$work/to_try"
running=0 stopped=0
trap 'stopped=1' TERM
while read -r name file where sha256 options; do
    [[ $stopped -eq 0 ]] || break
    try "$name" "$file" "$where" "$options" "$sha256" &
    running=$((running + 1))
    if [[ $running -ge ${opt[jobs]} ]]; then
        wait -n || true
        running=$((running - 1))
        summarise
    fi
done <"$work/to_try"
until wait; do :; done # a signal ends a wait, not what it waits for
summarise
if [[ ${flag[control]} -eq 1 ]]; then
    jq -r '"\(.kernels) right kernels: \(.gate) of them failed the gate"' "$work/summary.json"
    jq -e '.gate == 0' "$work/summary.json" >/dev/null || exit 1
else
    jq -r '"\(.kernels) wrong kernels: \(.ordinary // "none tried") caught by an ordinary run, " +
        "\(.gate // "none tried") by the gate, in \(.seconds) s", (.missed[] | "missed: \(.)")' "$work/summary.json"
    jq -e '.missed == []' "$work/summary.json" >/dev/null || exit 1
fi
jq -e '.not_reached == []' "$work/summary.json" >/dev/null ||
    die 4 "cut off: $(jq '.not_reached | length' "$work/summary.json") kernels not reached: --resume goes on"
