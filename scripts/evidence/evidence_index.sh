#!/usr/bin/env bash
# Writes README.md of an evidence folder: each file, what it shows, the command that makes it, what is current.
#
# usage: scripts/evidence/evidence_index.sh [options]
#   --dir DIR     the folder (repeatable; default: every folder of evidence/ with records of a GPU)
#   --check       write nothing; exit 1 when README.md is out of step
#   --no-compile  with --check: takes README.md's word for what is current
#   --sample N    files of more rows than N: look at N of them, evenly spread (default 50)
# What is current is decided by scripts/evidence/evidence_current.sh. --check compares all columns but that one without
# compiling, and looks at two rows of each file that README.md calls wholly current.
# scripts/lib/evidence/files.json says what each file shows: a file without an entry is an error. What `make report`
# draws in the folder (report.html, plots/) has none.
# Exit: 0, 1 out of step or a file without an entry, 2 usage, 4 NOT-RUN (no fa_bench, no jq, no compiler, a row that
# could not be compiled): nothing is written. FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/report/tables.sh
opt=([sample]=50)
flag=([check]=0 [no-compile]=0)
many=([dir]='')
parse_options "$@"
need_number 1 sample
mapfile -t dirs < <(values_of dir)
for dir in "${dirs[@]}"; do
    [[ -d $dir ]] || die 2 "no folder '$dir'"
done
need_bench
[[ ${#dirs[@]} -gt 0 ]] || mapfile -t dirs < <(folders)
make_work

# What is current of each row looked at, into $work/rows.
look_at() { # SAMPLE FILE...
    : >"$work/rows"
    [[ $# -eq 1 ]] || scripts/evidence/evidence_current.sh --rows --sample "$1" "${@:2}" >"$work/rows" || exit $?
    jq -es 'all(.[]; .current != null)' "$work/rows" >/dev/null || die 4 "NOT-RUN: a row could not be compiled"
}
index() { # DIR
    jqf evidence/index -rs --arg dir "$1" --rawfile files "$work/files" \
        --slurpfile entries "$lib/evidence/files.json" "$work/rows"
}

for dir in "${dirs[@]}"; do
    dir=${dir%/}
    find "$dir" -type f ! -name README.md ! -name report.html ! -path "$dir/plots/*" -printf '%P\n' |
        sort >"$work/files"
    unknown=$(jq -r '.[].file' "$lib/evidence/files.json" | grep -vxFf /dev/stdin "$work/files" | head -n 1 || true)
    [[ -z $unknown ]] || die 1 "$dir/$unknown has no entry in scripts/lib/evidence/files.json"
    if [[ ${flag[check]} -eq 0 ]]; then
        mapfile -t files < <(sed -nE "s|^.*[.](json\|jsonl\|gz)\$|$dir/&|p" "$work/files")
        look_at "${opt[sample]}" "${files[@]}"
        index "$dir" >"$work/index"
        replace_file "$dir/README.md" <"$work/index"
        echo "$dir/README.md"
        continue
    fi
    [[ -e $dir/README.md ]] || die 1 "no $dir/README.md: run $0"
    : >"$work/rows"
    without_last() { sed 's/ *[^|]*|$//' "$1"; }
    diff <(index "$dir" | without_last /dev/stdin) <(without_last "$dir/README.md") ||
        die 1 "$dir/README.md is out of step: run $0"
    [[ ${flag[no-compile]} -eq 0 ]] || continue
    mapfile -t files < <(awk -F' *[|] *' -v dir="$dir" 'NF > 4 {gsub(/`/, "", $2); n = split($(NF - 1), k, " ")
        if (n >= 3 && k[2] == "of" && k[1] == k[3]) print dir "/" $2}' "$dir/README.md")
    look_at 2 "${files[@]}"
    stale=$(jq -rs 'map(select(.current == false).file) | unique | join(" ")' "$work/rows")
    [[ -z $stale ]] || die 1 "not all current: $stale: run $0"
done
