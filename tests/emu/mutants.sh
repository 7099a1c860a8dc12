#!/usr/bin/env bash
# Mutation proof of the race detector: runs each kernel on the emulator without each barrier and each wait in turn.
#
# usage: tests/emu/mutants.sh [options] [KERNEL|FILE.cu...]
#   KERNEL|FILE.cu     of the registry (default: every kernel that the emulator runs but those of
#                      hopper_mutants.sh), or a kernel of your own
#   --json FILE        summary (default build/mutants.json)
#   --explained FILE   why a mutant may survive (default tests/emu/mutants_explained.tsv): kernel file, function,
#                      statement, which of them in that function, and the reason, by tabs
#   --tries N          only the first N of the tiles, inputs and orders that a mutant is tried with
#   --sample N         N mutants, drawn by --seed (default: all); an explanation without a survivor is no error then
#   --seed S           default: drawn, and printed
#   --list             the mutants, none is run
# A mutant is one __syncthreads, __syncwarp, bar_sync, bar_sync_apart, bar_arrive, cp_async_wait, cp_async_commit,
# cp_async_fence or wait_for_turn fewer, in the kernel's file or one it includes. Prints a table: where, what, and what
# caught it.
# FA_BENCH names the binary (default ./fa_bench). Exit: 0 every survivor is explained, 1 one is not, or an explanation
# is of a mutant that is caught, 2 usage, 4 no kernel runs here.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/emu/mutants.sh
opt=([json]=build/mutants.json [explained]=tests/emu/mutants_explained.tsv [tries]=99 [sample]=0 [seed]=$RANDOM)
flag=([list]=0)
arguments=words
parse_options "$@"
need_number 1 tries
need_number 0 sample seed
need_bench
json=${opt[json]} explained=${opt[explained]} tries=${opt[tries]} sample=${opt[sample]} seed=${opt[seed]}
list=${flag[list]} kernels=("${words[@]}")
all=0
if [[ ${#kernels[@]} -eq 0 ]]; then
    all=1
    mapfile -t kernels < <("$bench" --list-kernels --json - |
        jq -r '.[] | select(.kind == "hand" and .emulated and .missing == null and (.arch_specific | not)) | .name')
fi
make_work
export XDG_CACHE_HOME=$work/cache FA_HOME=$PWD
cp "$bench" "$work/fa_bench" # what others build or edit meanwhile does not disturb
cp -r kernels "$work/original"
: >"$work/lines"

# Enough rows and keys for two tiles of each, and one head more than one.
shape=(--device emu --batch 1 --heads 2 --seq 70 --seq-kv 200 --dim 64 --seeds 1 --check cpu --no-ptxas --timeout 60)
# What is tried on a mutant until something objects: other tiles reach other lines, other orders other races.
variants=("--sanitize thread" "--dist needle --sanitize thread" "--stages 1 --sanitize thread"
    "--stages 2 --sanitize thread" "--stages 3 --sanitize thread" "--splits 2 --sanitize thread"
    "--splits 4 --sanitize thread" "--m 16 --sanitize thread" "--m 16 --n 16 --warps 1 --sanitize thread"
    "--m 16 --warps 4 --stages 1 --sanitize thread"
    "--m 64 --n 32 --warps 2 --sanitize thread" "--m 16 --n 32 --warps 4 --sanitize thread"
    "--m 32 --warps 4 --sanitize thread" "--n 32 --warps 2 --sanitize thread"
    "--dim 256 --n 16 --sanitize thread" "--causal --sanitize thread" "--seq-kv 3 --causal --sanitize thread"
    "--acc fp16 --atol 1 --sanitize thread" "--window 30,9 --sanitize thread"
    "--window 3,3 --dist needle --dim-v 128 --sanitize thread"
    "--warps 4 --sanitize thread" "--deterministic --schedule descending --sanitize thread"
    "--heads 4 --kv-heads 1 --seq-kv 30 --sinks --sanitize thread"
    "--schedule descending" "--schedule random" "--stages 2 --schedule random" "--sanitize address")
variants=("${variants[@]:0:tries}")
statement='(cute::)?(__syncthreads|__syncwarp|bar_sync|bar_sync_apart|bar_arrive|cp_async_wait<[^;]*>|'
statement+='cp_async_commit|cp_async_fence|wait_for_turn)\([^;]*\);'

knobs_of() { # KERNEL: its operator, type, tile and only shape, and the folder of the headers that it needs
    local op headers folder dtype
    IFS=$'\t' read -r op dtype headers < <("$work/fa_bench" --list-kernels --json - |
        jq -r --arg k "$1" '.[] | select(.name == $k) | "\(.op)\t\(.dtype // "fp16")\t\(.headers // "")"')
    echo -n "--op $op --dtype $dtype "
    folder=${headers^^}_DIR # CUTLASS_DIR
    [[ -z $headers ]] || echo -n "--include ${!folder:-build/$headers}/include "
    "$work/fa_bench" --op "$op" --dtype "$dtype" --kernel "$1" --compile-only --json - --quiet 2>/dev/null |
        jq -r '(.config | to_entries[] | select(.key != "maxreg") | "--\(.key) \(.value)"),
            ((.reason // "") | capture("serves (?<only>--.*) only").only)' | tr '\n' ' ' || true
}
files_of() { # FILE.cu: it and the headers with barriers that it includes, directly or not
    local seen=" $1 " files=("$1") i=0 next
    while [[ $i -lt ${#files[@]} ]]; do
        while read -r next; do
            if [[ -e $work/original/$next && $seen != *" $next "* && $next != shared/prims.cuh ]]; then
                seen+="$next "
                files+=("$next")
            fi
        done < <(sed -n 's/^#include "\([a-z_0-9/]*\.cuh\)"/\1/p' "$work/original/${files[i]}")
        i=$((i + 1))
    done
    printf '%s\n' "${files[@]}"
}
# The statements of a file: "line, function, statement, which of them in the function", by tabs.
statements_of() { # FILE
    awk -v statement="$statement" -v OFS='\t' '
        /^([A-Za-z_]|    __device__)/ && /\(/ && !/;$/ && !/^(static_assert|FA_KERNEL_INFO)/ {
            text = $0
            gsub(/(__launch_bounds__|FA_LAUNCH_BOUNDS)\([^)]*\)/, "", text)
            if (match(text, /[A-Za-z_0-9]+\(/)) name = substr(text, RSTART, RLENGTH - 1)
        }
        match($0, statement) && $0 !~ /^[ ]*(\/\*|\*|#)/ {
            text = substr($0, RSTART, RLENGTH)
            print FNR, name, text, ++seen[name text]
        }' "$work/original/$1"
}
run() { # SOURCE OPTIONS...: the status in the record
    "$work/fa_bench" "${shape[@]}" --source "$@" --json - --quiet 2>/dev/null |
        jq -r '.status + (if .fault then " fault \(.fault)" else "" end) + ": " + ((.reason // "") | split("\n")[0])' ||
        true
}
what_caught() { # STATUS VARIANT: nothing when it passed
    local by
    case $1 in
        "wrong fault data race"* | "wrong fault equal-value stores"*) echo "race ($2)" ;;
        wrong*Sanitizer*) echo "sanitizer ($2)" ;;
        "wrong fault"*) by=${1#wrong fault } && echo "${by%%:*} ($2)" ;;
        wrong*) echo "wrong result ($2)" ;;
        error*"was written while it was compiled"*) ;; # a header of the tree: the next try says more
        error*) echo "$1 ($2)" ;;
        timeout*) echo "hang ($2)" ;;
    esac
}
why_of() { # FILE FUNCTION STATEMENT NUMBER
    [[ -e $explained ]] || return 0
    awk -F'\t' -v f="$1" -v n="$2" -v s="$3" -v k="$4" '!/^#/ && $1 == f && $2 == n && $3 == s && $4 == k {print $5}' \
        "$explained"
}

mutate() { # KERNEL SOURCE-FILE KNOBS...: every mutant of it
    local kernel=$1 source=$2 knobs=("${@:3}") variant words file line name text number by why verdict
    local -A passes=() # what the kernel itself says to a variant
    while read -r file; do
        while IFS=$'\t' read -r line name text number; do
            grep -qxF "$kernel $file $line" "$work/drawn" || continue
            rm -rf "$work/kernels"
            cp -r "$work/original" "$work/kernels"
            sed -i -E "${line}s/$statement/;/" "$work/kernels/$file"
            by='' why='' verdict=CAUGHT
            for variant in "${variants[@]}"; do
                read -ra words <<<"$variant"
                [[ -n ${passes[$variant]:-} ]] ||
                    passes[$variant]=$(run "$work/original/$source" "${knobs[@]}" "${words[@]}")
                [[ ${passes[$variant]} == pass* ]] || continue
                by=$(what_caught "$(run "$work/kernels/$source" "${knobs[@]}" "${words[@]}")" "$variant")
                [[ -z $by ]] || break
            done
            if [[ ${passes[*]} != *pass:* ]]; then
                echo "| $kernel | - | does not run here, no mutants | - |"
                return
            fi
            if [[ -z $by ]]; then
                why=$(why_of "$file" "$name" "$text" "$number")
                verdict=$([[ -n $why ]] && echo EXPLAINED || echo SURVIVED)
            fi
            echo "| $kernel | $file:$line | \`$text\` in $name | ${by:-$verdict${why:+: $why}} |"
            jq -nc --arg kernel "$kernel" --arg file "$file" --arg function "$name" --arg statement "$text" \
                --argjson number "$number" \
                --arg verdict "$verdict" --arg by "$by" --arg why "$why" '$ARGS.named' >>"$work/lines"
        done < <(statements_of "$file")
    done < <(files_of "$source")
}

: >"$work/all"
for kernel in "${kernels[@]}"; do
    source=$kernel.cu
    if [[ $kernel == *.cu ]]; then
        [[ -e $kernel ]] || die 2 "no file $kernel"
        source=$(basename "$kernel")
        cp "$kernel" "$work/original/"
        cp "$(dirname "$kernel")"/*.cuh "$work/original/" 2>/dev/null || true
    elif [[ ! -e $work/original/$source ]]; then
        die 2 "no kernel $kernel"
    fi
    if [[ $list -eq 1 ]]; then
        files_of "$source" | while read -r file; do statements_of "$file" | sed "s|^|$file\t|"; done
        continue
    fi
    files_of "$source" | while read -r file; do statements_of "$file" | sed "s|^\([0-9]*\).*|$kernel $file \1|"; done \
        >>"$work/all"
done
[[ $list -eq 0 ]] || exit 0
cp "$work/all" "$work/drawn"
if [[ $sample -gt 0 ]]; then
    awk -v seed="$seed" 'BEGIN {srand(seed)} {print rand() "\t" $0}' "$work/all" | LC_ALL=C sort -n |
        head -n "$sample" | cut -f2 >"$work/drawn"
    echo "$(wc -l <"$work/drawn") of $(wc -l <"$work/all") mutants, drawn by --seed $seed"
    all=0
fi
for kernel in "${kernels[@]}"; do
    grep -qF "$kernel " "$work/drawn" || continue
    source=$(basename "$kernel" .cu).cu
    knobs=()
    [[ $kernel == *.cu ]] || read -ra knobs < <(knobs_of "$kernel"; echo)
    mutate "$kernel" "$source" "${knobs[@]}"
done
[[ -s $work/lines ]] || die 4 "nothing to take out, or no kernel runs here"

# A statement of a header is one mutant per kernel: explained where it survives, stale where no kernel lets it.
mkdir -p "$(dirname "$json")"
lib=tests jqf summaries/mutants -s --rawfile explained <(cat "$explained" 2>/dev/null || true) --argjson all $all \
    --argjson known "$(wc -l <"$work/all")" "$work/lines" >"$json"
lib=tests jqf summaries/mutants_text -r "$json"
jq -e '.unexplained == 0 and .stale == []' "$json" >/dev/null
