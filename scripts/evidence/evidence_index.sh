#!/usr/bin/env bash
# Writes README.md of an evidence folder: each file, what it shows, the command that makes it, commits, what is current.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evidence/evidence_index.sh [options]
  --dir DIR     the folder (default: every folder of evidence/ with a ladder.json or peers.json)
  --check       write nothing; exit 1 when README.md is out of step
  --no-compile  with --check: takes README.md's word for what is current
  --sample N    files of more rows than N: look at N of them, evenly spread (default 50)
What is current is decided by scripts/evidence/evidence_current.sh. --check compares all columns but that one without
compiling, and looks at two rows of each file that README.md calls wholly current.
scripts/lib/evidence/files.json says what each file shows: a file without an entry is an error.
Exit: 0, 1 out of step or a file without an entry, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([sample]=50)
flag=([check]=0 [no-compile]=0)
many=([dir]='')
parse_options "$@"
need_number 1 sample
need_bench
mapfile -t dirs < <(values_of dir)
for dir in "${dirs[@]}"; do
    [[ -d $dir ]] || die 2 "no folder '$dir'"
done
[[ ${#dirs[@]} -gt 0 ]] || mapfile -t dirs < <(find evidence -mindepth 2 -maxdepth 2 \
    \( -name ladder.json -o -name peers.json \) -printf '%h\n' | sort -u)
make_work

# The files of each entry, "ENTRY<tab>FILE"; of several entries that match, the one that stands first.
list_files() { # DIR
    local entry path file i=0 listed=$'\n'
    while IFS= read -r entry; do
        for path in "$1"/$entry; do # a pattern
            file=${path#"$1"/}
            [[ -e $path && $listed != *$'\n'"$file"$'\n'* ]] || continue
            listed+=$file$'\n'
            printf '%s\t%s\n' "$i" "$path"
        done
        i=$((i + 1))
    done < <(jq -r '.[].file' "$lib/evidence/files.json")
    while IFS= read -r file; do
        [[ $listed == *$'\n'"$file"$'\n'* ]] || die 1 "$1/$file has no entry in scripts/lib/evidence/files.json"
    done < <(find "$1" -type f ! -path "$1/README.md" -printf '%P\n' | sort)
}

# An entry's files, every commit that they name, and how many rows they have about a kernel.
facts_of() { # ENTRY
    mapfile -t files < <(awk -F'\t' -v entry="$1" '$1 == entry {print $2}' "$work/files")
    : >"$work/values"
    [[ ! ${files[0]} =~ [.](json|jsonl|gz)$ ]] || zcat -f "${files[@]}" >"$work/values"
    jqf evidence/facts -cs --argjson kinds "$kinds" --argjson entry "$1" --arg files "$(printf '%s\n' "${files[@]}")" \
        "$work/values"
}

# What is current of each file: [{file, looked_at, current}].
currency() { # SAMPLE FILE...
    local rows=$1
    shift
    [[ $# -gt 0 ]] || { echo '[]'; return; }
    scripts/evidence/evidence_current.sh --sample "$rows" --rows "$@" |
        jqf evidence/currency -s
}

index() { # DIR CURRENCY
    jqf evidence/index -rs --arg dir "${1##*/}" --slurpfile entries "$lib/evidence/files.json" \
        --slurpfile currency "$2" "$work/facts"
}

kinds=$(kinds)
for dir in "${dirs[@]}"; do
    list_files "$dir" >"$work/files"
    cut -f1 "$work/files" | sort -nu | while read -r entry; do facts_of "$entry"; done >"$work/facts"
    if [[ ${flag[check]} -eq 0 ]]; then
        mapfile -t files < <(jq -r 'select(.rows > 0).files[]' "$work/facts")
        currency "${opt[sample]}" "${files[@]}" >"$work/currency"
        index "$dir" "$work/currency" >"$dir/README.md.tmp"
        mv "$dir/README.md.tmp" "$dir/README.md"
        echo "$dir/README.md"
        continue
    fi
    [[ -e $dir/README.md ]] || die 1 "no $dir/README.md: run $0"
    echo '[]' >"$work/currency"
    without_last() { sed 's/ *[^|]*|$//' "$1"; }
    diff <(index "$dir" "$work/currency" | without_last /dev/stdin) <(without_last "$dir/README.md") ||
        die 1 "$dir/README.md is out of step: run $0"
    [[ ${flag[no-compile]} -eq 0 ]] || continue
    mapfile -t files < <(awk -F' *[|] *' 'NF > 4 {gsub(/`/, "", $2); n = split($(NF - 1), k, " ")
        if (n >= 3 && k[2] == "of" && k[1] == k[3]) print $2}' "$dir/README.md")
    paths=()
    for file in "${files[@]}"; do
        mapfile -t -O "${#paths[@]}" paths < <(compgen -G "$dir/$file" | head -n 1)
    done
    currency 2 "${paths[@]}" | jq -r '.[] | select(.current < .looked_at).file' >"$work/stale"
    [[ ! -s $work/stale ]] || die 1 "not all current: $(paste -sd' ' "$work/stale"): run $0"
done
