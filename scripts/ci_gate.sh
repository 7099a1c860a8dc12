#!/usr/bin/env bash
# The gate: every kernel of the registry over problems that are derived from its rules and drawn from the whole contract
# (scripts/lib/gate/problems.py), the emulator's primitives beside the GPU's, then speed ratios against the committed
# baseline of this GPU. Without a GPU the emulator runs the same classes at small sizes and the rest is NOT-RUN.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/ci_gate.sh [options]
  --require-gpu     no GPU, or no emulator beside it, is a failure, not a NOT-RUN
  --kernel NAME     only this kernel (repeatable)
  --library FILE    the matrix for this library (include/fa_library.h) instead (repeatable; GPU only): what it refuses
                    in its own words is skipped
  --source FILE.cu  a kernel that is not registered; its tile options, if any, after --
  --draws N         problems drawn at random for each kernel (default: 60; emulator: 12; --race: 6; --sanitize: 4)
  --seed S          of the draws (default: 1); each draw is a line of options, so a failing one runs alone
  --fail-fast       begin no case after one that failed
  --shrink SECONDS  how long to look for the smallest problem that still fails, a kernel (default: 30; 0: do not)
  --out DIR         records, junit.xml and summary.json (default: build/gate)
  --jobs N          runs at once while checking (default: the cores); timing is always one at a time
  --sanitize        compute-sanitizer's four tools over every kernel instead of the matrix: one seed, short sequences,
                    every edge of the matrix, and each value of the knobs that choose other code
  --race            the emulator's matrix under its race detector, one seed, whatever GPU there is
  --conform         conformance of the emulator alone: tests/emu/conform and tests/emu/ptx give the same words there
                    and on the GPU
  --resume FILE     with --sanitize: cases.jsonl of an earlier run, or .gz. A case that did not fail there, with the
                    same options on the same kind of GPU and the same machine code (of a library: version and sources
                    around it), is taken over with its commit
  --quick           a fifth of the matrix
  --limit SECONDS   begin no case after so long, end those that run ten seconds later: the rest is NOT-RUN
  --dry-run         print the runs, do nothing
Exit: 0 all passed, 1 something failed, 2 usage, 4 nothing could run, or not all of it. FA_BENCH names the binary
(default ./fa_bench), EMU_CASE the one that runs a conformance kernel (default: beside FA_BENCH, or
build/tests/emu/emu_case).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([out]=build/gate [jobs]=$(nproc) [limit]=0 [resume]='' [source]='' [draws]=-1 [seed]=1 [shrink]=30)
flag=([require-gpu]=0 [sanitize]=0 [race]=0 [conform]=0 [quick]=0 [dry-run]=0 [fail-fast]=0)
many=([kernel]='' [library]='')
arguments=words
parse_options "$@"
[[ ${#words[@]} -eq 0 ]] || die 2 "unknown option ${words[0]} (see --help)"
need_number 1 jobs
[[ ${opt[draws]} == -1 ]] || need_number 0 draws
need_number 0 limit seed shrink
[[ -z ${opt[source]} || -z ${many[kernel]} ]] || die 2 "--source or --kernel, not both"
[[ -z ${opt[source]} || -r ${opt[source]} ]] || die 2 "--source takes a file that can be read, not '${opt[source]}'"
[[ -n ${opt[source]} || ${#more[@]} -eq 0 ]] || die 2 "options after -- are for --source"
out=${opt[out]} jobs=${opt[jobs]} limit=${opt[limit]} resume=${opt[resume]} require_gpu=${flag[require-gpu]}
sanitize=${flag[sanitize]} race=${flag[race]} quick=${flag[quick]} dry_run=${flag[dry-run]}
matrix=$((1 - flag[conform])) conform=1
[[ $sanitize -eq 0 && $race -eq 0 ]] || conform=0
mapfile -t only < <(values_of kernel)
[[ -z $resume || ($sanitize -eq 1 && -r $resume) ]] ||
    die 2 "--resume takes cases.jsonl of an earlier --sanitize, not '$resume'"
need_bench
command -v python3 >/dev/null || die 4 "NOT-RUN: no python3: run scripts/setup.sh"

registry=$("$bench" --list-kernels --json -)
mapfile -t kernels < <(jq -r '.[] | select(.variant_of == null) | .name' <<<"$registry")
if [[ ${#only[@]} -gt 0 ]]; then
    for name in "${only[@]}"; do
        kernel_exists "$name" || die 2 "no kernel $name"
    done
    kernels=("${only[@]}")
    conform=0
fi
source=${opt[source]}
if [[ -n $source ]]; then
    kernels=("$(basename "$source" .cu)")
    only=("${kernels[@]}")
    conform=0
fi
[[ $matrix -eq 1 ]] || kernels=()
mapfile -t libraries < <(values_of library)
if [[ ${#libraries[@]} -gt 0 ]]; then
    [[ ${#only[@]} -eq 0 ]] || die 2 "--library and --kernel are two gates"
    [[ $conform -eq 1 && $matrix -eq 1 ]] ||
        die 2 "--library goes over the matrix alone: no --sanitize, --race, --conform"
    for file in "${libraries[@]}"; do
        [[ -r $file && $file != *'|'* ]] || die 2 "--library takes a file that can be read, not '$file'"
    done
    kernels=("${libraries[@]/#/library:}")
    only=("${kernels[@]}")
    conform=0
fi

gpu=0
device_name=$(gpu_name "$bench")
[[ $race -eq 0 && -n $device_name ]] && gpu=1
device=emu sm_count=4 arch=89 # the emulator's, of src/emu/device.c
if [[ $gpu -eq 1 ]]; then
    device=cuda
    read -r sm_count arch < <(gpu_probe "$bench" |
        jq -r '"\(.device.sm_count // 132) \(.device.arch // "sm_90" | ltrimstr("sm_"))"')
fi
mode=plain draws=12
[[ $device == emu ]] || draws=60
[[ $race -eq 0 ]] || mode=race draws=6
[[ $sanitize -eq 0 ]] || mode=sanitize draws=4
[[ ${opt[draws]} == -1 ]] || draws=${opt[draws]}

subject() { # KERNEL: what the bench is asked for, into the array `asked`
    asked=(--kernel "$1")
    [[ $1 != library:* ]] || asked=(--library "${1#library:}")
    [[ -z $source ]] || asked=(--source "$source" "${more[@]}")
}
if [[ $gpu -eq 0 && $require_gpu -eq 1 ]]; then # before any work
    echo "FAIL no GPU, and --require-gpu"
    exit 1
fi

of() { # KERNEL EXPRESSION: something of its row
    jq -r --arg k "$1" ".[] | select(.name == \$k) | $2" <<<"$registry"
}

declare -A kind # of each kernel: asked for often; none of the files of --library
while read -r name what; do kind[$name]=$what; done < <(jq -r '.[] | "\(.name) \(.kind)"' <<<"$registry")

[[ -z $source || $matrix -eq 0 ]] || kind[${kernels[0]}]=hand

# Derived and drawn: each rule of the registry that can match here with both masks, each class of fault, then draws.
derived() { # KERNEL M
    local of_rules=()
    [[ -n $source || $1 == library:* ]] || of_rules=(--kernel "$1" --registry /dev/stdin)
    python3 scripts/lib/gate/problems.py list --device "$device" --mode "$mode" --sm-count "$sm_count" \
        --arch "$arch" --m "$2" --draws "$draws" --seed "${opt[seed]}" "${of_rules[@]}" <<<"$registry"
}

# Listed problems that every kernel serves on a GPU: one line each, "m" is the kernel's own row tile.
problems() { # KERNEL M
    local m=$2 causal seq dim dist
    [[ $gpu -eq 1 ]] || return 0
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
    # Longer than the scores that a library keeps at once: in pieces, of several heads and of a part of one.
    [[ ${kind[$1]:-} != library ]] || printf '%s\n' "--batch 1 --heads 3 --seq 16384 --seeds 1" \
        "--batch 1 --heads 8 --kv-heads 1 --seq 16384 --causal --seeds 1"
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

# Under a sanitizer: the edges of the matrix in sequences of a few tiles, and other code than the default tile's.
sanitize_problems() { # KERNEL M
    local causal knob value
    for causal in "" --causal; do echo "--batch 2 --heads 3 --seq 129 --dim 64 $causal"; done
    for causal in "" --causal; do echo "--batch 1 --heads 2 --kv-heads 1 --seq 113 --seq-kv 257 --dim 128 $causal"; done
    echo "--batch 1 --heads 3 --seq 199 --seq-kv 65 --dim 72 --causal" # rows without keys
    [[ ${kind[$1]} != library ]] || return 0 # of a library one kernel is ours, the softmax between its products
    echo "--batch 1 --heads 2 --seq $(($2 + 1)) --dim 40"
    echo "--batch 1 --heads 2 --seq 65 --dim 256 --causal"
    # more blocks than multiprocessors: the tiles for a full device
    echo "--batch 1 --heads 150 --seq 65 --dim 64 --causal"
    echo "--batch 1 --heads 150 --kv-heads 50 --seq 33 --dim 256"
    echo "--batch 1 --heads 2 --seq 1 --seq-kv 71 --dim 128"
    echo "--batch 1 --heads 2 --kv-heads 1 --seq 33 --dim 16 --misalign 1"
    echo "--batch 1 --heads 2 --seq $(($2 - 1 > 0 ? $2 - 1 : 1)) --dim 248 --dist rising --misalign 4 --causal"
    for knob in stages swizzle splits acc; do
        for value in $(of "$1" ".values.$knob // [] | if length > 1 then .[] else empty end"); do
            [[ $value == "$(of "$1" ".defaults.$knob")" ]] ||
                echo "--batch 1 --heads 2 --seq 113 --seq-kv 300 --dim 64 --causal --$knob $value"
        done
    done
}

if [[ $dry_run -eq 1 ]]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
earlier= # the file may be the one that this run writes
if [[ -n $resume ]]; then
    earlier=$(mktemp)
    zcat -f "$resume" >"$earlier"
fi
rm -rf "$out/records" "$out/not_reached" "$out/failed"
mkdir -p "$out/records"
list=$out/cases
: >"$list"
for kernel in "${kernels[@]}"; do
    [[ -z $source && $device == emu && $(of "$kernel" .emulated) != true ]] && continue
    m=$(of "$kernel" '.defaults.m // 64')
    m=${m:-64}
    if [[ $sanitize -eq 1 ]]; then
        {
            sanitize_problems "$kernel" "$m"
            [[ ${kind[$kernel]} == library ]] || derived "$kernel" "$m"
        } | awk -v quick="$quick" -v kernel="$kernel" '!quick || NR % 5 == 1 {
            for (i = split("initcheck synccheck racecheck memcheck", tool); i > 0; i--)
                print NR "|" kernel "|" tool[i] "|--seeds 1 --timeout 500 " $0}' >>"$list"
        continue
    fi
    extra=$([[ $race -eq 0 ]] || echo "--race --schedule random --seeds 1 ")
    { problems "$kernel" "$m"; derived "$kernel" "$m"; } |
        awk -v quick="$quick" -v start="$kernel||$extra" '!quick || NR % 5 == 1 {print start $0}' >>"$list"
done
if [[ $sanitize -eq 1 ]]; then # problem by problem, so that one that is cut off has tried every kernel
    sort -n -t'|' -s -k1,1 "$list" | cut -d'|' -f2- >"$list.sorted"
    mv "$list.sorted" "$list"
fi
if [[ $dry_run -eq 1 ]]; then
    cat "$list"
    exit 0
fi
[[ $sanitize -eq 0 || $gpu -eq 1 ]] || { echo "ci_gate.sh: NOT-RUN: compute-sanitizer needs a GPU" >&2; exit 4; }
if [[ $sanitize -eq 1 ]] && ! command -v compute-sanitizer >/dev/null; then
    echo "ci_gate.sh: NOT-RUN: no compute-sanitizer in PATH" >&2
    exit 4
fi

[[ $gpu -eq 1 || ${#libraries[@]} -eq 0 ]] || { echo "ci_gate.sh: NOT-RUN: a library needs a GPU" >&2; exit 4; }

out_of_time() { [[ $limit -gt 0 && $SECONDS -ge $limit ]]; }

# What a sanitizer found. That the bench ended with another code than 0 counts as an error there; its record says why.
findings() { # TEXT
    awk '/ERROR SUMMARY:.*not printed/ {n++}
        /Target application returned an error/ {n--}
        / SUMMARY: / {said = 1; sub(/.* SUMMARY: /, ""); n += $1}
        END {print said ? (n > 0 ? n : 0) : "none"}' "$1"
}

# Cases of one kernel under one tool, in one process: with its context, and what a sanitizer does first, once for all.
# Each leaves a record, and a case that says what came of it. A sanitizer's findings are of no case in particular, and
# what has no record may be another's fault: then each gets a process of its own. A finding is exit 9.
unit() { # NUMBERS
    local first=$1 number kernel tool args code=0 found
    out_of_time && return
    [[ ${flag[fail-fast]} -eq 0 || ! -e $out/failed ]] || return 0
    IFS='|' read -r kernel tool args <<<"${lines[first - 1]}"
    # Each check gets its share of the cores: threads of many checks that spin for one another only take turns.
    local text=$out/records/$first.txt asked
    subject "$kernel"
    local run=("$bench" "${asked[@]}" --device "$device" --timing none --quiet)
    local command=(env OMP_NUM_THREADS="$threads" OMP_WAIT_POLICY=passive "${run[@]}")
    if [[ -n $tool ]]; then
        # One thread for the reference: the cores are full of other cases.
        command=(env OMP_NUM_THREADS=1 compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9
            --show-backtrace device)
        # Kernels of libraries have more barriers than the tool makes room for, and then it stops them.
        [[ $tool != synccheck ]] || command+=(--num-cuda-barriers 100000)
        command+=("${run[@]}" --check cpu)
    fi
    if [[ $# -eq 1 ]]; then
        rm -f "$out/records/$first.json" # of an earlier try
        # shellcheck disable=SC2206
        command+=(--json "$out/records/$first.json" $args)
    else
        for number in "$@"; do echo "${lines[number - 1]##*|}"; done >"$out/records/$first.runs"
        command+=(--runs "$out/records/$first.runs" --json "$out/records/$first.jsonl")
    fi
    if [[ $limit -gt 0 ]]; then
        local left=$((limit + 10 - SECONDS))
        command=(timeout --kill-after=2 $((left > 1 ? left : 1)) "${command[@]}")
    fi
    "${command[@]}" >"$text" 2>&1 || code=$?
    [[ $# -eq 1 ]] || part_records "$out/records/$first.jsonl" "$@"
    local cut=0
    [[ $limit -eq 0 || ($code -ne 124 && $code -ne 137) ]] || cut=1
    if [[ -n $tool ]]; then
        [[ $cut -eq 0 ]] || return 0 # not reached, as good as: the tool says at the end what it found
        found=$(findings "$text")
        [[ $found == 0 || $found == none ]] || code=9
        [[ $found != none ]] || code=137 # ended before it could say
        if [[ $# -gt 1 && ($code -eq 9 || $code -eq 137 || $(all_there "$@") -eq 0) ]]; then
            for number in "$@"; do unit "$number"; done
            return
        fi
    fi
    for number in "$@"; do
        if [[ -s $out/records/$number.json || $# -eq 1 ]]; then
            judge "$number" "$code" "$text" >"$out/records/$number.case.tmp"
            mv "$out/records/$number.case.tmp" "$out/records/$number.case"
        elif [[ $cut -eq 0 ]]; then
            unit "$number"
        fi
    done
}

# The record of each line that has one, as if it had been alone.
part_records() { # FILE NUMBERS
    local file=$1 line record
    shift
    [[ -e $file ]] || return 0
    while IFS=$'\t' read -r line record; do
        echo "$record" >"$out/records/${!line}.json"
    done < <(jq -r '"\(.provenance.line)\t\(tojson)"' "$file" 2>/dev/null || true) # the last one may be cut off
}

# 1 when each case has a record that passed, or says why it could not run: none of an error.
all_there() { # NUMBERS
    local number
    for number in "$@"; do
        if ! jq -e '.status | IN("pass", "infeasible", "not_run")' "$out/records/$number.json" >/dev/null 2>&1; then
            echo 0
            return
        fi
    done
    echo 1
}

# A case is passed, failed, or skipped with a reason: a library without a plan, TMA on misaligned rows.
judge() { # NUMBER CODE TEXT
    local record=$out/records/$1.json code=$2 text=$3 kernel tool args library verdict=failed where
    IFS='|' read -r kernel tool args <<<"${lines[$1 - 1]}"
    [[ -s $record ]] || echo '{}' >"$record"
    # The code of a process is that of the first of its runs that did not pass; a record knows its own.
    [[ ($code -eq 9 || $code -eq 137) && -n $tool ]] ||
        code=$(jqf gate/code --argjson code "$code" "$record")
    library=$([[ ${kind[$kernel]:-} == library ]] && echo true || echo false)
    [[ $code -eq 0 && -s $record && $(jq -r .status "$record") == pass ]] && verdict=passed
    [[ $code -eq 4 && $library == true ]] && verdict=skipped
    # A library's plans are for one layout; a file of one's own may serve less than the contract.
    [[ $code -eq 3 && ($args =~ --misalign|"--strides far" || -n $tool || -n $source || $library == true ||
        $kernel == library:*) ]] && verdict=skipped
    # What a tool finds in the kernels of a library, and none of ours in the report: not ours to judge.
    if [[ $code -eq 9 && $library == true && -n $tool ]] && ! grep -qE ' in [a-z_0-9]+\.cuh?:' "$text"; then
        verdict=skipped
        where=$(grep -oE '(at|access at) [A-Za-z_0-9]+' "$text" | sed 's/.* //' | head -n 1)
        printf '\nthe tool finds something in the library, not in our kernels%s\n' "${where:+: $where}" >>"$text"
    fi
    [[ $verdict != failed ]] || : >"$out/failed"
    jqf gate/case -c --arg kernel "$kernel" --arg tool "$tool" --arg args "$args" --arg verdict "$verdict" \
        --argjson code "$code" --arg gpu "$device_name" --arg key "${key[$1]:-}" \
        --arg text "$(tail -c 1500 "$text")" "$record"
}

# The cases that are done, in order, and what they come to; made again as they finish, so that a gate that is cut off
# leaves it.
cases=$out/cases.jsonl
gather() {
    local i
    for ((i = 1; i <= ${#lines[@]}; i++)); do
        [[ ! -e $out/records/$i.case ]] || cat "$out/records/$i.case"
    done >"$cases"
}
summarise() { # NOTE
    jqf gate/summary -s --arg device "$device" --arg note "$1" --arg gpu "$device_name" --argjson sanitize "$sanitize" \
        --argjson race "$race" "$cases" >"$out/summary.json"
}

emu_note=""
[[ $device == emu && $race -eq 0 ]] && emu_note="NOT-RUN on a GPU: none here; emulator matrix only"
running=0
at_once() { # COMMAND...: in the background, as many as --jobs at a time
    "$@" &
    running=$((running + 1))
    if [[ $running -ge $jobs ]]; then
        wait -n || true
        running=$((running - 1))
    fi
}
trap 'limit=1' TERM # what there is goes into the summary
mapfile -t lines <"$list"

# What each case is made with: the machine code of a kernel; of a library its version and the sources around it, as
# "VERSION.SHA".
declare -A key
code_keys() {
    local kernel arch version number library_sources
    mkdir -p "$out/keys"
    arch=$(gpu_probe "$bench" | jq -r '.ptxas.arch // .device.arch // empty') # sm_90a of an sm_90
    library_sources=$(cat src/cuda/cu* src/cuda/softmax.cu 2>/dev/null | sha256sum | cut -d' ' -f1)
    for kernel in "${kernels[@]}"; do
        if [[ ${kind[$kernel]} == library ]]; then
            at_once library_key "$kernel" "$library_sources"
        else
            at_once kernel_keys "$kernel" "$arch"
        fi
    done
    wait
    running=0
    while read -r number version; do key[$number]=$version; done < <(cat "$out"/keys/*.keys)
}
of_kernel() { awk -F'|' -v k="$1" '$1 == k {print NR "|" $0}' "$list"; }
library_key() { # KERNEL SHA
    local version number
    version=$(gpu_probe "$bench" --kernel "$1" | jq -r '.provenance.compiler // empty')
    of_kernel "$1" | while IFS='|' read -r number _; do echo "$number ${version// /_}.$2"; done >"$out/keys/$1.keys"
}
kernel_keys() { # KERNEL ARCH
    of_kernel "$1" | awk -F'|' '!($4 in seen) {seen[$4] = 1; print $4}' >"$out/keys/$1.runs"
    local asked
    subject "$1"
    "$bench" "${asked[@]}" --compile-only ${2:+--arch "$2"} --quiet --runs "$out/keys/$1.runs" \
        --json "$out/keys/$1.jsonl" >/dev/null 2>&1 || true
    jq -r '[.provenance.line, .provenance.code_sha256 // "none"] | @tsv' "$out/keys/$1.jsonl" 2>/dev/null |
        awk -F'\t' 'NR == FNR {args[NR] = $0; next} {print args[$1] "|" $2}' "$out/keys/$1.runs" - >"$out/keys/$1.codes"
    of_kernel "$1" | awk -F'|' 'NR == FNR {code[$1] = $2; next} {print $1, ($4 in code ? code[$4] : "none")}' \
        "$out/keys/$1.codes" - >"$out/keys/$1.keys"
}
take_over() { # what an earlier run has settled
    local number
    declare -A settled
    while IFS=$'\t' read -r what line; do
        settled[$what]=$line
    done < <(jqf gate/settled -r --arg gpu "$device_name" "$earlier")
    for ((number = 1; number <= ${#lines[@]}; number++)); do
        line=${settled["${lines[number - 1]} ${key[$number]:-none}"]:-}
        [[ -z $line ]] || echo "$line" >"$out/records/$number.case"
    done
    echo "$(find "$out/records" -name '*.case' | wc -l) of ${#lines[@]} cases are those of $resume"
}
[[ $sanitize -eq 0 ]] || code_keys
if [[ -n $resume ]]; then
    take_over
    rm -f "$earlier"
fi

cores=$(nproc)
threads=$(((cores + jobs - 1) / jobs))
# Units in the order of the list: what is cut off has tried every kernel. The emulator has nothing to share.
per_unit=1
[[ $device != cuda ]] || per_unit=8
[[ $sanitize -eq 0 ]] || per_unit=6
mapfile -t units < <(for ((number = 1; number <= ${#lines[@]}; number++)); do
    [[ -e $out/records/$number.case ]] || echo "$number|${lines[number - 1]}"
done | awk -F'|' -v per="$per_unit" '
    {g = $2 "|" $3; nth = seen[g]++; at = int(nth / per) "|" g}
    {if (!(at in of)) order[++n] = at; of[at] = of[at] " " $1}
    END {for (i = 1; i <= n; i++) print of[order[i]]}')
finished=0
for unit in "${units[@]}"; do
    out_of_time && break
    read -r -a numbers <<<"$unit"
    at_once unit "${numbers[@]}"
    finished=$((finished + ${#numbers[@]}))
    if [[ $((finished / 20)) -gt $(((finished - ${#numbers[@]}) / 20)) ]]; then
        gather
        summarise "unfinished: $(wc -l <"$cases") of ${#lines[@]} cases"
    fi
done
wait
running=0
for ((number = 1; number <= ${#lines[@]}; number++)); do
    [[ ! -e $out/records/$number.case ]] || continue
    [[ ${flag[fail-fast]} -eq 0 || ! -e $out/failed ]] || continue
    # One that was killed is a failure; the limit leaves those it did not come to.
    if [[ $limit -eq 0 ]]; then
        judge "$number" 137 /dev/null >"$out/records/$number.case"
    else
        echo "${lines[number - 1]}" >>"$out/not_reached"
    fi
done
gather
if [[ -e $out/not_reached ]]; then
    jqf gate/not_reached -Rc "$out/not_reached" >>"$cases"
fi

# Conformance: what a primitive gives in tests/emu/conform, and inline PTX in tests/emu/ptx, word for word, on the
# emulator and here.
conformance() {
    local file name side
    for file in tests/emu/conform/*.cu tests/emu/ptx/*.cu; do
        name=$(conform_name "$file")
        for side in emu cuda; do
            at_once words "$file" $side "$out/records/$name.$side"
        done
    done
    wait
    for file in tests/emu/conform/*.cu tests/emu/ptx/*.cu; do
        name=$(conform_name "$file")
        jqf gate/conform_case -nc --arg name "$name" \
            --arg emu "$(sha256 "$out/records/$name.emu")" --arg cuda "$(sha256 "$out/records/$name.cuda")" \
            --arg emu_text "$(head -c 400 "$out/records/$name.emu.txt")" \
            --arg cuda_text "$(head -c 400 "$out/records/$name.cuda.txt")"
    done
}
conform_name() { # FILE: its name, for inline PTX with ptx_ before it
    local name
    name=$(basename "$1" .cu)
    [[ $1 != */ptx/* ]] || name=ptx_$name
    echo "$name"
}
words() { # FILE emu|cuda TO: what a kernel wrote; nothing where it failed its own comparisons
    # 2: the random schedule
    FA_HOME=${FA_HOME:-$PWD} "$emu_case" "$1" --device "$2" --schedule 2 --out "$3" >"$3.txt" 2>&1 || rm -f "$3"
}
sha256() { if [[ -e $1 ]]; then sha256sum "$1" | cut -d' ' -f1; fi; }
emu_case=${EMU_CASE:-$(dirname "$bench")/emu_case}
[[ -x $emu_case ]] || emu_case=build/tests/emu/emu_case
if [[ $conform -eq 1 && $gpu -eq 1 && -x $emu_case ]]; then
    conformance >>"$cases"
    jqf gate/conform -s --arg gpu "$device_name" "$cases" >"$out/conform.json"
elif [[ $conform -eq 1 ]]; then
    why=$([[ $gpu -eq 1 ]] && echo "no $emu_case: make test-binaries" || echo "no GPU")
    emu_note="$emu_note${emu_note:+; }NOT-RUN: conformance ($why)"
fi

# Speed: each row of the baseline is a ratio by --vs that has to hold to within 3 %.
baseline=
[[ $gpu -eq 0 || $sanitize -eq 1 || $matrix -eq 0 ]] ||
    baseline=evidence/$(gpu_folder "$device_name")/gate_baseline.json
if [[ -n $baseline && -e $baseline ]]; then
    while read -r row; do
        kernel=$(jq -r .kernel <<<"$row") vs=$(jq -r .vs <<<"$row")
        args=$(jq -r .args <<<"$row") least=$(jq -r .ratio <<<"$row")
        [[ ${#only[@]} -gt 0 && " ${only[*]} " != *" $kernel "* ]] && continue
        code=0
        echo '{}' >"$out/speed.json"
        # shellcheck disable=SC2086
        "$bench" --kernel "$kernel" --vs "$vs" $args --quiet --json "$out/speed.json" >"$out/speed.txt" 2>&1 ||
            code=$?
        jqf gate/speed_case -c --arg kernel "$kernel" --arg args "--vs $vs $args" --argjson least "$least" \
            --argjson code "$code" "$out/speed.json" >>"$cases"
    done < <(jq -c '.[]' "$baseline")
elif [[ $sanitize -eq 0 && $race -eq 0 && $matrix -eq 1 ]]; then
    emu_note="$emu_note${emu_note:+; }NOT-RUN: speed (no baseline for this device)"
fi

jqf gate/junit -rs "$cases" >"$out/junit.xml"
summarise "$emu_note"

# The smallest problem that fails as the first failing one of each kernel does, as a command.
shrink_failures() {
    local kernel args asked
    while IFS='|' read -r kernel args; do
        subject "$kernel"
        args=$(python3 scripts/lib/gate/problems.py shrink --problem "$args" --seconds "${opt[shrink]}" -- \
            "$bench" "${asked[@]}" --device "$device" --timing none --quiet) ||
            args="$args # did not fail again"
        echo "smallest that fails: $bench ${asked[*]} --device $device $args"
    done < <(jq -r 'select(.verdict == "failed" and .tool == "" and (.code | IN(1, 6))) | "\(.kernel)|\(.args)"' \
        "$cases" | sort -t'|' -u -k1,1)
}
jqf gate/said_failed -r "$cases"
[[ ${opt[shrink]} -eq 0 ]] || shrink_failures | tee "$out/smallest"
jqf gate/said -r "$out/summary.json"
[[ -n $emu_note ]] && echo "$emu_note"
if [[ $conform -eq 1 && $gpu -eq 1 && ! -x $emu_case && $require_gpu -eq 1 ]]; then
    echo "FAIL no $emu_case for the conformance of the emulator, and --require-gpu"
    exit 1
fi
jq -es 'length > 0 and all(.[]; .verdict != "failed")' "$cases" >/dev/null
if jq -es 'any(.[]; .verdict == "not_run")' "$cases" >/dev/null; then exit 4; fi
