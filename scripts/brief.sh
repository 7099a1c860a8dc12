#!/usr/bin/env bash
# What a person or a model reads before the next kernel: the task, the best so far, what failed, what figures advise.
#
# usage: scripts/brief.sh [options]
#   --from DIR         a sweep's folder or evidence/<gpu> (default: the GPU's own, else the first that has a
#                      leaderboard or a ladder)
#   --scores FILE      scores of evaluate.sh, JSON Lines or a list: what a search has tried (repeatable)
#   --problems FILE    the task, as evaluate.sh takes it (default scripts/lib/score/problems.txt), without hidden lines
#   --arch sm_XX       compile target (default: the leaderboard's or the ladder's, else sm_89)
#   --chars N          at most so many bytes (default 8000, at least 4000): the longest lists are cut first
#   --out FILE         write to FILE, not to stdout
# Prints Markdown. Measures nothing. FA_BENCH names the binary (default ./fa_bench).
# Exit: 0, 2 usage, 4 not run (no fa_bench, no jq), 6 the page cannot be written.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
opt=([from]='' [problems]=$lib/score/problems.txt [arch]='' [chars]=8000 [out]='')
many=([scores]='')
parse_options "$@"
need_number 4000 chars
bench=${FA_BENCH:-$here/../fa_bench}
need_bench
is_input "${opt[problems]}" || die 2 "no file '${opt[problems]}'"
[[ -z ${opt[from]} || -d ${opt[from]} ]] || die 2 "no folder '${opt[from]}'"

from=${opt[from]}
if [[ -z $from ]]; then
    gpu=$(gpu_name "$bench")
    for from in ${gpu:+"$here/../evidence/$(gpu_folder "$gpu")"} "$here"/../evidence/*; do
        [[ ! -e $from/leaderboard.json && ! -e $from/ladder.jsonl ]] || break
    done
fi

make_work
all_of() { # KIND FILE: its values, if it is there; .gz too
    local file
    file=$(either "$2")
    [[ -z $file ]] || read_json "$1" "$file"
}
all_of line "$from/leaderboard.jsonl" >"$work/log"
all_of board "$from/leaderboard.json" >"$work/boards"
jq -sc . "$work/boards" >"$work/board"
all_of record "$from/ladder.jsonl" >"$work/records"
jqf ladder/table -s "$work/records" >"$work/ladder"
all_of profile "$from/ncu.jsonl" >"$work/profiles"
: >"$work/scores"
while read -r file; do
    read_json score "$file" >"$work/score"
    jq -c 'del(.private)' "$work/score" >>"$work/scores"
done < <(values_of scores)

# The limits of the target, from a run of a moment on the emulator.
arch=${opt[arch]:-$(jq -r '.[0].group // "" | split("|")[1] // ""' "$work/board")}
arch=${arch:-$(jq -r '[.[].arch | strings | select(startswith("sm_"))] | max_by(length) // "sm_89"' "$work/ladder")}
kernel=$("$bench" --list-kernels --json - | jq -r '[.[] | select(.kind == "hand")][0].name')
"$bench" --kernel "$kernel" --device emu --arch "$arch" --batch 1 --heads 1 --seq 16 --dim 64 --seeds 1 --check cpu \
    --quiet --json "$work/limits" 2>/dev/null || true

header_words() { # MACRO: its words of fa_params.h, separated by spaces
    sed -nE "/^#define $1/{:more;/\\\\\$/{N;b more};s/.*\"(.*)\".*/\1/;y/|/ /;p}" "$here/../include/fa_params.h"
}
jqf brief/brief -rn --slurpfile log "$work/log" --slurpfile board "$work/board" --slurpfile ladder "$work/ladder" \
    --slurpfile profiles "$work/profiles" --slurpfile scores "$work/scores" --rawfile problems "${opt[problems]}" \
    --slurpfile limits <(jq -c . "$work/limits" 2>/dev/null) --arg arch "$arch" --argjson chars "${opt[chars]}" \
    --arg features "$(header_words FA_FEATURES_WORDS)" --arg needs "$(header_words FA_NEEDS_WORDS)" \
    --arg abi "$(sed -n '/^typedef struct fa_params {/,/^} fa_params;/p' "$here/../include/fa_params.h")" >"$work/brief"
put_out "${opt[out]}" <"$work/brief"
