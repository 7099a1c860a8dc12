#!/usr/bin/env bash
# The gate: every kernel of the registry over the problem matrix of correctness, then speed ratios against the committed
# baseline of this GPU. Without a GPU the emulator runs a smaller matrix and the rest is NOT-RUN.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/ci_gate.sh [options]
  --require-gpu     no GPU is a failure, not a NOT-RUN
  --kernel NAME     only this kernel (repeatable)
  --out DIR         records, junit.xml and summary.json (default: build/gate)
  --jobs N          runs at once while checking (default: the cores); timing is always one at a time
  --sanitize        compute-sanitizer's four tools over every kernel instead of the matrix
  --quick           a fifth of the matrix
  --dry-run         print the runs, do nothing
Exit: 0 all passed, 1 something failed, 2 usage, 4 nothing could run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/gpu.sh
. scripts/gpu.sh
bench=${FA_BENCH:-./fa_bench}
out=build/gate jobs=$(nproc) require_gpu=0 sanitize=0 quick=0 dry_run=0
only=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --require-gpu) require_gpu=1 ;;
        --sanitize) sanitize=1 ;;
        --quick) quick=1 ;;
        --dry-run) dry_run=1 ;;
        --kernel | --out | --jobs)
            [[ $# -ge 2 ]] || { echo "ci_gate.sh: $1 needs a value" >&2; exit 2; }
            case $1 in --kernel) only+=("$2") ;; --out) out=$2 ;; --jobs) jobs=$2 ;; esac
            shift
            ;;
        --help) usage; exit 0 ;;
        *) echo "ci_gate.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
    shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || { echo "ci_gate.sh: --jobs takes a whole number from 1" >&2; exit 2; }
[[ -x $bench ]] || { echo "ci_gate.sh: no $bench: run make" >&2; exit 4; }
command -v jq >/dev/null || { echo "ci_gate.sh: no jq: run scripts/setup.sh" >&2; exit 4; }

registry=$("$bench" --list-kernels --json -)
mapfile -t kernels < <(jq -r '.[] | select(.variant_of == null) | .name' <<<"$registry")
if [[ ${#only[@]} -gt 0 ]]; then
    for name in "${only[@]}"; do
        jq -e --arg k "$name" 'any(.[]; .name == $k)' <<<"$registry" >/dev/null || { echo "ci_gate.sh: no kernel $name" >&2; exit 2; }
    done
    kernels=("${only[@]}")
fi

gpu=0
device_name=$(gpu_name "$bench")
[[ -n $device_name ]] && gpu=1
device=emu
[[ $gpu -eq 1 ]] && device=cuda

of() { # KERNEL EXPRESSION: something of its row
    jq -r --arg k "$1" ".[] | select(.name == \$k) | $2" <<<"$registry"
}

# Problems every kernel serves: one line each, "m" is the kernel's own row tile.
problems() { # M
    local m=$1 causal seq dim dist
    if [[ $gpu -eq 0 ]]; then
        for causal in "" --causal; do
            for seq in 1 $((m - 1)) $((m + 1)) 113; do
                [[ $seq -gt 0 ]] && echo "--batch 1 --heads 2 --kv-heads 1 --seq $seq --dim 40 $causal"
            done
            echo "--batch 2 --heads 2 --seq 29 --seq-kv 71 --dim 64 $causal"
        done
        return
    fi
    for causal in "" --causal; do
        for seq in 1 $((m - 1)) "$m" $((m + 1)) 113 129 799 1023 1024; do
            [[ $seq -gt 0 ]] && echo "--batch 2 --heads 4 --kv-heads 2 --seq $seq $causal"
        done
        echo "--batch 1 --heads 8 --kv-heads 1 --seq 129 --seq-kv 799 --dim 128 $causal"
        echo "--batch 1 --heads 3 --seq 799 --seq-kv 129 $causal"
        echo "--batch 1 --heads 2 --seq 1 --seq-kv 1024 --dim 128 $causal"
        echo "--batch 2 --heads 3 --seq 1024 --dim 128 $causal"
        echo "--batch 1 --heads 3 --seq 1023 --dim 256 $causal"
    done
    for dim in 16 24 40 72 80 96 120 128 160 192 248 256; do
        echo "--batch 1 --heads 2 --seq 129 --dim $dim --causal"
    done
    for dist in uniform outlier sharp rising falling needle constant-v coded; do
        echo "--batch 2 --heads 2 --seq 513 --dist $dist"
        echo "--batch 2 --heads 2 --seq 513 --dim 128 --causal --dist $dist"
    done
    echo "--batch 1 --heads 2 --seq 129 --misalign 1"
    echo "--batch 1 --heads 2 --seq 129 --dim 72 --misalign 4 --causal"
}

if [[ $dry_run -eq 1 ]]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
rm -rf "$out/records"
mkdir -p "$out/records"
list=$out/cases
: >"$list"
for kernel in "${kernels[@]}"; do
    [[ $device == emu && $(of "$kernel" .emulated) != true ]] && continue
    if [[ $sanitize -eq 1 ]]; then
        for tool in memcheck racecheck synccheck initcheck; do
            for causal in "" --causal; do
                echo "$kernel|$tool|--batch 2 --heads 3 --seq 129 --dim 64 --seeds 1 --timeout 500 $causal" >>"$list"
            done
        done
        continue
    fi
    m=$(of "$kernel" '.defaults.m // 64')
    problems "$m" | awk -v quick=$quick '!quick || NR % 5 == 1' | sed "s/^/$kernel||/" >>"$list"
done
if [[ $dry_run -eq 1 ]]; then
    cat "$list"
    exit 0
fi
[[ $sanitize -eq 0 || $gpu -eq 1 ]] || { echo "ci_gate.sh: NOT-RUN: compute-sanitizer needs a GPU" >&2; exit 4; }
if [[ $sanitize -eq 1 ]] && ! command -v compute-sanitizer >/dev/null; then
    echo "ci_gate.sh: NOT-RUN: no compute-sanitizer in PATH" >&2
    exit 4
fi

# One run: leaves a record, the exit code and the text. A sanitizer's findings make it exit 9.
one() { # NUMBER LINE
    local record kernel tool args
    record=$out/records/$1
    IFS='|' read -r kernel tool args <<<"$2"
    local command=("$bench" --kernel "$kernel" --device "$device" --timing none --quiet --json "$record.json")
    [[ -n $tool ]] && command=(compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 "${command[@]}" --check cpu)
    local code=0
    # shellcheck disable=SC2086
    "${command[@]}" $args >"$record.txt" 2>&1 || code=$?
    grep -qE 'ERROR SUMMARY: [1-9]|[1-9][0-9]* hazards displayed' "$record.txt" && code=9
    echo "$code" >"$record.code"
}
emu_note=""
[[ $device == emu ]] && emu_note="NOT-RUN on a GPU: none here; emulator matrix only"
number=0 running=0
while read -r line; do
    number=$((number + 1))
    one "$number" "$line" &
    running=$((running + 1))
    if [[ $running -ge $jobs ]]; then
        wait -n
        running=$((running - 1))
    fi
done <"$list"
wait

# A case is passed, failed, or skipped with a reason: a library without a plan, TMA on misaligned rows.
cases=$out/cases.jsonl
: >"$cases"
number=0
while IFS='|' read -r kernel tool args; do
    number=$((number + 1))
    record=$out/records/$number
    code=$(cat "$record.code")
    library=$(of "$kernel" '.kind == "library"')
    verdict=failed
    [[ $code -eq 0 ]] && verdict=passed
    [[ $code -eq 4 && $library == true ]] && verdict=skipped
    [[ $code -eq 3 && $args == *--misalign* ]] && verdict=skipped
    jq -nc --arg kernel "$kernel" --arg tool "$tool" --arg args "$args" --arg verdict "$verdict" --argjson code "$code" \
        --arg text "$(tail -c 1500 "$record.txt")" '{kernel: $kernel, tool: $tool, args: $args, verdict: $verdict, code: $code, text: $text}' >>"$cases"
done <"$list"

# Speed: each row of the baseline is a ratio by --vs that has to hold to within 3 %.
baseline=
[[ $gpu -eq 1 && $sanitize -eq 0 ]] && baseline=evidence/$(gpu_folder "$device_name")/gate_baseline.json
if [[ -n $baseline && -e $baseline ]]; then
    while read -r row; do
        kernel=$(jq -r .kernel <<<"$row") vs=$(jq -r .vs <<<"$row") args=$(jq -r .args <<<"$row") least=$(jq -r .ratio <<<"$row")
        [[ ${#only[@]} -gt 0 && " ${only[*]} " != *" $kernel "* ]] && continue
        code=0
        echo '{}' >"$out/speed.json"
        # shellcheck disable=SC2086
        "$bench" --kernel "$kernel" --vs "$vs" $args --quiet --json "$out/speed.json" >"$out/speed.txt" 2>&1 || code=$?
        jq -c --arg kernel "$kernel" --arg args "--vs $vs $args" --argjson least "$least" --argjson code "$code" \
            '{kernel: $kernel, tool: "speed", args: $args, code: $code, text: "ratio \(.vs.ratio), baseline \($least)",
              verdict: (if $code == 0 and (.vs.ratio // 0) >= 0.97 * $least then "passed" else "failed" end)}' "$out/speed.json" >>"$cases"
    done < <(jq -c '.[]' "$baseline")
elif [[ $sanitize -eq 0 ]]; then
    emu_note="$emu_note${emu_note:+; }NOT-RUN: speed (no baseline for this device)"
fi

jq -rs '"<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
    "<testsuite name=\"ci_gate\" tests=\"\(length)\" failures=\"\(map(select(.verdict == "failed")) | length)\" skipped=\"\(map(select(.verdict == "skipped")) | length)\">",
    (.[] | "  <testcase classname=\"\(.kernel | @html)\" name=\"\(.tool | @html) \(.args | @html)\">" +
        (if .verdict == "failed" then "<failure message=\"exit \(.code)\">\(.text | gsub("[^\\u0009\\u000a\\u000d\\u0020-\\ud7ff]"; "") | @html)</failure>"
         elif .verdict == "skipped" then "<skipped message=\"\(.text | @html)\"/>" else "" end) + "</testcase>"),
    "</testsuite>"' "$cases" >"$out/junit.xml"
jq -s --arg device "$device" --arg note "$emu_note" '{device: $device, note: $note,
    kernels: (group_by(.kernel) | map({kernel: .[0].kernel, passed: map(select(.verdict == "passed")) | length,
        failed: map(select(.verdict == "failed")) | length, skipped: map(select(.verdict == "skipped")) | length}))}' "$cases" >"$out/summary.json"

jq -r 'select(.verdict == "failed") | "FAIL \(.kernel) \(.tool) \(.args)  (exit \(.code))\n     \(.text | split("\n") | map(select(length > 0)) | last // "")"' "$cases"
jq -r '.kernels[] | "\(.kernel): \(.passed) passed, \(.failed) failed, \(.skipped) skipped"' "$out/summary.json"
[[ -n $emu_note ]] && echo "$emu_note"
if [[ $gpu -eq 0 && $require_gpu -eq 1 ]]; then
    echo "FAIL no GPU, and --require-gpu"
    exit 1
fi
jq -es 'length > 0 and all(.[]; .verdict != "failed")' "$cases" >/dev/null
