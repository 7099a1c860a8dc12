#!/usr/bin/env bash
# The wrong kernels of tests/wrong/wrong.tsv, each an example with one fault: how many an ordinary run on the emulator
# catches, and how many the emulator's gate.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: tests/wrong/run.sh [options]
  --only NAME     this kernel alone (repeatable)
  --ordinary      the ordinary run alone, without the gate
  --draws N       of the gate (default: 6)
  --jobs N        kernels at once (default: the cores)
  --json FILE     write the summary to FILE
Exit: 0 the gate caught all (--ordinary: whatever it caught), 1 one passed the gate, 2 usage, 4 no binary.
FA_BENCH names the binary (default ./fa_bench).
EOT
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
opt=([draws]=6 [jobs]=$(nproc) [json]='')
flag=([ordinary]=0)
many=([only]='')
parse_options "$@"
need_number 0 draws
need_number 1 jobs
need_bench
make_work
mapfile -t only < <(values_of only)

tile_of() { # BASE: the options that an example needs, small for the emulator
    case $1 in
        plain) echo "--m 64" ;;
        mma_plain) echo "--m 32 --n 32 --warps 2 --stages 2" ;;
    esac
}

# Caught: the run ends with a wrong result or with an error of the kernel's.
ordinary() { # FILE BASE
    local code=0 tile
    read -r -a tile <<<"$(tile_of "$2")"
    "$bench" --source "$1" "${tile[@]}" --device emu --batch 2 --heads 4 --seq 128 --quiet >/dev/null 2>&1 || code=$?
    [[ $code -eq 1 || $code -eq 6 ]]
}
gate() { # FILE BASE OUT
    local code=0 tile
    read -r -a tile <<<"$(tile_of "$2")"
    scripts/ci_gate.sh --source "$1" --draws "${opt[draws]}" --fail-fast --shrink 0 --jobs 1 --out "$3" -- \
        "${tile[@]}" >"$3.txt" 2>&1 || code=$?
    [[ $code -eq 1 ]]
}
try() { # NAME FILE BASE
    local by_run=false by_gate=false first=
    ! ordinary "$2" "$3" || by_run=true
    if [[ ${flag[ordinary]} -eq 0 ]]; then
        ! gate "$2" "$3" "$work/$1" || by_gate=true
        first=$(jq -r 'select(.verdict == "failed") | .args' "$work/$1/cases.jsonl" 2>/dev/null | head -n 1)
    fi
    jq -nc --arg name "$1" --argjson ordinary "$by_run" --argjson gate "$by_gate" --arg problem "$first" \
        '{$name, $ordinary, $gate, $problem}' >"$work/$1.case"
    echo "$1: ordinary run $by_run, gate $by_gate"
}

python3 tests/wrong/make.py "$work/kernels" "${only[@]}" >"$work/list"
running=0
while read -r name file base; do
    try "$name" "$file" "$base" &
    running=$((running + 1))
    if [[ $running -ge ${opt[jobs]} ]]; then
        wait -n || true
        running=$((running - 1))
    fi
done <"$work/list"
wait
cat "$work"/*.case | jq -s --argjson gate "$((1 - flag[ordinary]))" -f tests/wrong/summary.jq >"$work/summary.json"
[[ -z ${opt[json]} ]] || replace_file "${opt[json]}" <"$work/summary.json"
jq -r '"\(.kernels) wrong kernels: \(.ordinary) caught by an ordinary run, \(.gate // "none tried") by the gate",
    (.missed[] | "missed: \(.)")' "$work/summary.json"
jq -e '.missed == []' "$work/summary.json" >/dev/null
