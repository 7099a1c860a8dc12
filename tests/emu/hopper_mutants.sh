#!/usr/bin/env bash
# Mutation proof of the emulator's Hopper: runs the wgmma kernels, each wrong in one way, until something objects.
#
# usage: tests/emu/hopper_mutants.sh [options] [WORDS]
#   --list       the mutants, none is run
#   --json FILE  summary (default build/hopper_mutants.json)
#   --sample N   only N of them, drawn by --seed S (default 1); 0: all (default)
#   WORDS        only mutants whose line in tests/emu/hopper_mutants.tsv has them
# A mutant is tried under the race detector in every schedule, and without it. FA_BENCH names the binary (default
# ./fa_bench). Exit: 0 all are caught, 1 one is not or changes nothing, 2 usage, 4 no binary.
# shellcheck disable=SC2034 # the arrays of variants go by their names
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/emu/hopper_mutants.sh
opt=([json]=build/hopper_mutants.json [sample]=0 [seed]=1)
flag=([list]=0)
arguments=words
parse_options "$@"
need_number 0 sample seed
json=${opt[json]} sample=${opt[sample]} seed=${opt[seed]}
shuffled() { awk -v seed="$seed" 'BEGIN {srand(seed)} {print rand() "\t" $0}' | LC_ALL=C sort -n | cut -f2-; }
table() {
    grep -v '^#' tests/emu/hopper_mutants.tsv | grep -F -- "${words[*]}" |
        if [[ $sample -eq 0 ]]; then cat; else shuffled | head -n "$sample"; fi
}
if [[ ${flag[list]} -eq 1 ]]; then
    table | cut -f1-3
    exit 0
fi
need_bench
make_work
export FA_HOME=$PWD
shape=(--device emu --arch sm_90a --seeds 1 --check cpu --no-ptxas --timeout 120 --dim 64)
declare -A tile=(
    [wgmma]="--m 128 --n 64 --warps 8 --stages 2 --batch 1 --heads 6 --seq 300 --seq-kv 520"
    [wgmma_small]="--m 64 --n 64 --warps 8 --stages 1 --batch 1 --heads 2 --seq 70 --seq-kv 520"
    [wgmma_decode]="--m 128 --n 64 --warps 8 --stages 2 --batch 1 --heads 6 --kv-heads 2 --seq 62 --seq-kv 520")
variants=("--race --schedule random" "--race --schedule ascending" "--race --schedule descending"
    "--race --schedule greedy" "--race --schedule random --causal" "--race --schedule random --seq-kv 60"
    "--race --schedule random --seq-kv 60 --m 64 --warps 4" "--schedule random" "--schedule descending"
    "--schedule random --dim 72")
# The mutants of KERNEL:features
tile[wgmma:features]="--m 128 --n 64 --warps 8 --stages 2 --heads 2 --lse"
features=("--race --lengths 0,200:300,1,70:3,90,33:90" "--batch 1 --heads 3 --seq 400 --window 90,0 --causal"
    "--batch 1 --seq 200 --seq-kv 300 --window 20,50" "--batch 1 --seq 200 --seq-kv 100 --softcap 3 --sinks"
    "--batch 1 --seq 90 --seq-kv 40 --causal --dim 128 --softcap 50 --sinks --alibi"
    "--batch 1 --seq 100 --dim 192 --dim-v 128"
    "--lengths 100,30:90 --splits 2 --dim 128 --sinks")

tile[wgmma:splits]="--m 128 --n 64 --warps 8 --stages 2 --batch 1 --heads 1"
splits=("--race --schedule random --seq 100 --seq-kv 300 --splits 3")

tile[wgmma_mla]="--dim 576 --dim-v 512 --v-in-k --m 64 --n 64 --warps 8 --stages 2 --kv-heads 1 --lse"
mla=("--race --schedule random --heads 12 --page-size 64 --lengths 6:330,1:70,2:0 --splits 1"
    "--race --schedule random --batch 1 --heads 16 --seq 1 --seq-kv 330 --splits 2"
    "--race --schedule descending --heads 16 --lengths 1:330,0:5,3:200 --splits 3"
    "--schedule random --batch 3 --heads 16 --seq 2 --seq-kv 100 --page-size 64 --splits 3 --causal --dist rising"
    "--schedule greedy --batch 1 --heads 16 --seq 1 --seq-kv 600 --splits 1 --dist outlier --scale 1"
    "--race --schedule ascending --batch 1 --heads 16 --seq 1 --seq-kv 330 --page-size 128 --splits 1")

tile[wgmma_fp8]="--dtype e4m3 --m 128 --n 64 --warps 8 --stages 2 --batch 1 --heads 1 --lse"
fp8=("--race --schedule random --seq 140 --seq-kv 330" "--race --schedule descending --seq 70 --seq-kv 330 --dim 144"
    "--race --schedule greedy --seq 140 --seq-kv 330 --stages 1" "--schedule random --seq 100 --seq-kv 520 --causal"
    "--schedule random --seq 16 --seq-kv 32768 --dist mean --n 128")
tile[wgmma_fp8:tickets]="--dtype e4m3 --n 128 --stages 2 --batch 2 --heads 3 --dim 128 --lse"
tickets=("--race --schedule random --m 192 --warps 12 --seq 200 --seq-kv 300"
    "--race --schedule greedy --m 128 --warps 8 --seq 200 --causal"
    "--race --schedule descending --m 192 --warps 12 --seq 330 --causal")
tile[wgmma_fp8:bits]="--dtype e4m3 --m 192 --n 128 --warps 12 --stages 2 --batch 1 --heads 1 --seq 100 --seq-kv 300"
bits=("--race --schedule random --dim 128" "--race --schedule greedy --dim 96 --dist sharp --scale 1")

tile[wgmma_decode:pages]="--m 128 --n 64 --warps 8 --stages 2 --heads 8 --kv-heads 2 --lse"
pages=("--race --schedule random --page-size 16 --lengths 25:330,1:70,2:0,20:150 --causal"
    "--race --schedule descending --page-size 48 --batch 2 --seq 3 --seq-kv 250 --splits 2"
    "--schedule random --page-size 32 --lengths 1:300,1:33 --dtype bf16"
    "--race --schedule greedy --page-size 16 --batch 1 --seq 1 --seq-kv 200")

tile[wgmma:pages]="--m 128 --n 64 --warps 8 --stages 2 --heads 24 --kv-heads 2"

tile[wgmma_decode:cache]="--kv-dtype e4m3 --m 64 --n 64 --warps 4 --stages 2 --heads 4 --kv-heads 2 --lse"
cache=("--race --schedule random --page-size 1 --lengths 5:330,1:70,2:0"
    "--schedule descending --seq 20 --seq-kv 390 --page-size 16"
    "--race --schedule greedy --stages 1 --batch 1 --seq 2 --seq-kv 300 --splits 2")

tile[wgmma_packed]="--m 128 --n 80 --warps 8 --stages 2 --heads 10 --kv-heads 2 --lse"
packed=("--schedule random --batch 1 --seq 70 --seq-kv 200 --window 60,0 --causal" "--lengths 30:90,50 --window 20,5"
    "--race --schedule random --batch 1 --seq 50 --seq-kv 90 --window 40,0")

tile[wgmma_backward]="--op backward --n 128 --warps 12 --stages 2 --batch 1 --heads 2 --kv-heads 1"
backward=("--race --schedule random --m 128 --seq 300 --seq-kv 700" "--race --schedule descending --m 128 --seq 300"
    "--race --schedule ascending --m 128 --seq 300 --stages 1" "--schedule random --m 128 --seq 300 --seq-kv 140"
    "--race --schedule greedy --dim 128 --m 80 --seq 203 --seq-kv 140 --causal"
    "--race --schedule descending --dim 128 --m 80 --seq 300 --deterministic"
    "--schedule greedy --dim 128 --m 80 --seq 203" "--race --schedule random --dim 128 --m 64 --seq 200 --splits 2"
    "--race --schedule random --dim 128 --m 64 --seq 300 --causal --heads 4 --kv-heads 2"
    "--race --schedule greedy --m 128 --seq 300 --splits 4"
    "--race --schedule random --m 128 --seq 700 --causal --window 127,0 --kv-heads 2")
tile[wgmma_backward_heads]="--op backward --m 128 --n 128 --warps 12 --stages 2 --batch 1 --heads 5 --causal"
heads=("--race --schedule random --seq 300" "--race --schedule descending --seq 500" "--seq 300 --seq-kv 90")
tile[wgmma_backward:wide]="--op backward --m 64 --n 128 --warps 12 --stages 2 --batch 1 --heads 2 --dim 192 --dim-v 128"
wide=("--race --schedule random --seq 200 --seq-kv 140" "--race --schedule descending --seq 200 --causal"
    "--race --schedule greedy --seq 203 --deterministic")
tile[wgmma_backward:shared]="--op backward --m 64 --n 64 --warps 12 --stages 2 --batch 1 --heads 2 --kv-heads 1"
shared=("--race --schedule random --dim 192 --dim-v 128 --seq 200 --seq-kv 70"
    "--schedule random --dim 136 --seq 64 --seq-kv 300 --deterministic"
    "--race --schedule descending --dim 256 --seq 200 --seq-kv 70"
    "--race --schedule greedy --dim 256 --dim-v 136 --seq 200 --causal" "--schedule random --dim 192 --seq 300"
    "--race --schedule random --dim 256 --seq 200 --splits 2")

verdict_of() { # KERNEL VARIANT: what objects; nothing when it passes, or is no C++
    local options
    read -ra options <<<"${tile[$1]} $2"
    "$bench" "${shape[@]}" "${options[@]}" --source "$work/kernels/${1%:*}.cu" --json - --quiet 2>/dev/null | jq -r '
        if .status == "pass" or .status == "compile_error" then "" else
        "\(.status): \((.reason // "") | split("\n")[0] | sub("^seed [0-9]+: "; "") | .[:90])" end'
}

mkdir -p "$(dirname "$json")"
: >"$work/lines"
while IFS=$'\t' read -r kernel file what command; do
    rm -rf "$work/kernels"
    cp -r kernels "$work/kernels"
    sed -i "$command" "$work/kernels/$file"
    by='' verdict=SURVIVED
    if cmp -s "kernels/$file" "$work/kernels/$file"; then
        verdict=UNCHANGED
    else
        declare -n tried=${kernel##*[:_]} # wgmma_mla: mla, wgmma_decode:pages: pages; of others the variants
        [[ -v tried ]] || declare -n tried=variants
        for variant in "${tried[@]}"; do
            by=$(verdict_of "$kernel" "$variant" || true)
            [[ -z $by ]] || { verdict=CAUGHT; by+=" ($variant)"; break; }
        done
    fi
    printf '%-9s %s: %s: %s\n' "$verdict" "$kernel" "$what" "$by"
    jq -nc --arg kernel "$kernel" --arg file "$file" --arg what "$what" --arg verdict "$verdict" --arg by "$by" \
        '$ARGS.named' >>"$work/lines"
done < <(table)
known=$(grep -vc '^#' tests/emu/hopper_mutants.tsv)
lib=tests jqf summaries/hopper_mutants -s --argjson known "$known" "$work/lines" >"$json"
jq -r '"\(.caught) of \(.caught + .missed) caught, of \(.known) in the table"' "$json"
jq -e '.missed == 0 and .caught > 0' "$json" >/dev/null
