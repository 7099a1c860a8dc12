# shellcheck shell=bash disable=SC2154 # $bench, $work and flag are the caller's
# The documents' tables in Markdown, from the registry and evidence/. Sourced by report.sh; a function per table.
# Those that have tables.
pages=(README.md docs/kernels.md docs/features.md docs/serving.md docs/backward.md evidence/README.md)

folders() { # of evidence/ with records of a GPU
    find evidence -mindepth 2 -maxdepth 2 \( -name 'ladder.jsonl*' -o -name 'leaderboard.jsonl*' \
        -o -name 'peers*.json' -o -name 'dense*.jsonl' -o -name 'versus.jsonl*' \) -printf '%h\n' | sort -u
}

kernels_table() {
    echo "| kernel | idea | default tile | tensor cores | architecture | emulated |"
    echo "|---|---|---|---|---|---|"
    "$bench" --list-kernels --json - | jqf report/kernels -r
}

# The longest file of that name in folders of evidence/ becomes $file; fails while there is none, saying what makes it.
need_evidence() { # FILE COMMAND
    file=$(find evidence -mindepth 2 -maxdepth 2 \( -name "$1" -o -name "$1.gz" \) -size +2c 2>/dev/null | sort |
        while read -r file; do echo "$(zcat -f "$file" | wc -l) $file"; done | sort -srnk1,1 | head -n 1)
    file=${file#* }
    [[ -n $file ]] || { echo "No $1 under evidence/ yet: \`$2\` on a GPU makes it."; return 1; }
}

# The rows of FILE that are of today's machine code, and those that were infeasible or not run, become the file $rows, a
# line each; $currency says how many they are. With --no-compile every row counts. So does, with --check, every row of a
# file that the pages call current, once two of its rows are (with --no-compile none is looked at).
today() { # FILE
    local n
    rows=$work/today.${1//\//_} # once a file, also for the functions that run in shells of their own
    if [[ -e $rows.said ]]; then
        currency=$(<"$rows.said")
        return
    fi
    if [[ ${flag[check]} -eq 1 ]] && are_current "$1" || [[ ${flag[check]} -lt ${flag[no-compile]} ]]; then
        read_json row "$1" >"$rows.read"
        jqf evidence/all_rows -nc --argjson kinds "$(kinds)" "$rows.read" >"$rows"
        n=$(jqf evidence/claiming -n "$rows")
        currency="Machine code equals today's: $n of $n rows (\`$1\`)."
        [[ ${flag[check]} -eq 1 ]] || currency="No row was looked at: its machine code may be another one today."
    else
        scripts/evidence/evidence_current.sh --rows --values "$1" >"$rows.lines" || exit $?
        jq -es 'all(.[]; .current != null)' "$rows.lines" >/dev/null ||
            die 4 "NOT-RUN: a row of $1 could not be compiled"
        jq -c 'select(.current or (.claims | not)).row' "$rows.lines" >"$rows"
        currency=$(jqf report/currency -rs --arg file "$1" "$rows.lines")
    fi
    echo "$currency" >"$rows.said"
}
# What stands above the table of FILE; fails while no row is of today's machine code, so that there is none.
head_of() { # FILE COMMAND
    today "$1"
    printf '%s\n\n' "$currency"
    [[ ! -s $rows ]] || return 0
    echo "No table: \`$2\` on a GPU measures them again."
    return 1
}
are_current() { # FILE: so the pages say, and so are two of its rows
    local said
    said=$(grep -ohE "^Machine code equals today's: ([0-9]+) of \1 rows \(\`$1\`\)" "${pages[@]}" | sort -u)
    [[ $(grep -c . <<<"$said") -eq 1 ]] || return 1
    [[ ${flag[no-compile]} -eq 0 ]] || return 0
    scripts/evidence/evidence_current.sh --sample 2 --rows "$1" >"$work/two" || exit $?
    jq -es 'all(.[]; .current)' "$work/two" >/dev/null
}

begin_table() { # FILE COMMAND: both; fails where there is no table
    need_evidence "$1" "$2" && head_of "$file" "$2"
}

ladder_table() {
    local file rows currency
    begin_table ladder.jsonl "scripts/evidence/evidence.sh ladder" || return 0
    jqf ladder/table -s "$rows" | jqf report/ladder -r --arg file "$file"
}

# The pairs in a few lines, and what is beside them.
summary_table() {
    local file rows currency folder said
    need_evidence versus.jsonl "scripts/evidence/evidence.sh versus" || return 0
    folder=$(dirname "$file")
    today "$file"
    said=$currency
    jqf pairs/rows -nR "$rows" >"$work/versus"
    rows=/dev/null
    for file in "$folder"/{dense.jsonl,peers_fa4.json}; do
        [[ -s $file && $rows == /dev/null ]] || continue
        today "$file"
        [[ ! -s $rows || $currency != *"left out"* ]] || said+=$'\n'$currency
    done
    printf '%s\n\n' "$said"
    [[ $(jq length "$work/versus") -gt 0 ]] ||
        { echo "No table: \`scripts/evidence/evidence.sh versus\` on a GPU measures them again." && return 0; }
    jqf report/summary -r --arg folder "$(basename "$folder")" --slurpfile fa4 "$rows" "$work/versus"
}

# The files of a folder with rows of scripts/peers.sh on dense problems; older ones are peers.json, peers_NAME.json.
dense_files() { # DIR
    local each
    for each in "$1"/{peers,peers_*}.json "$1"/{dense*,caches}.jsonl; do [[ ! -s $each ]] || echo "$each"; done
}

peers_table() {
    local dir each rows currency
    while read -r dir; do [[ -z $(dense_files "$dir") ]] || break; done < <(folders)
    [[ -n $dir ]] || { echo "No dense.jsonl under evidence/ yet: \`scripts/peers.sh\` on a GPU makes it."; return; }
    dense_files "$dir" | while read -r each; do
        ! head_of "$each" scripts/peers.sh || jqf report/peers -rs --arg file "$each" "$rows"
        echo
    done | sed '$ {/^$/d}'
}

# What two cards have both measured, one over the other.
cards_table() {
    local dir name rows currency said='' sweeps
    : >"$work/cards"
    while read -r dir; do
        for name in ladder versus serving; do
            rows=/dev/null
            [[ -z $(there "$name.jsonl") ]] || today "$dir/$(there "$name.jsonl")"
            [[ $rows == /dev/null ]] || said+="$currency"$'\n'
            case $name in
                ladder) jqf ladder/table -s "$rows" ;;
                versus) jqf pairs/rows -nR "$rows" ;;
                serving) jq -s . "$rows" ;;
            esac >"$work/card.$name"
        done
        sweeps=$dir/sweeps.jsonl
        [[ -s $sweeps ]] || sweeps=/dev/null
        jq -nc -L "$lib" 'include "report"; {folder: $folder, values: card_values($ladder[0]; $versus[0]; $serving[0];
            $sweeps)}' --arg folder "${dir##*/}" --slurpfile ladder "$work/card.ladder" \
            --slurpfile versus "$work/card.versus" --slurpfile serving "$work/card.serving" \
            --slurpfile sweeps "$sweeps" >>"$work/cards"
    done < <(folders)
    printf '%s\n' "$said"
    jqf report/side_by_side_table -rs "$work/cards"
}

versus_table() {
    local file rows currency
    begin_table versus.jsonl "scripts/evidence/evidence.sh versus" || return 0
    jqf pairs/rows -nR "$rows" | jqf report/versus -r --arg file "$file"
}

list_table() { # LIST of scripts/lib/peers
    local file rows currency
    begin_table "$1.jsonl" "scripts/peers.sh --problems $1" || return 0
    jqf report/features -rs --arg file "$file" "$rows"
}
features_table() { list_table features; }
paged_table() { list_table paged; }
fp8_table() { list_table fp8; }
backward_table() { list_table backward; }

# The best tile of each kernel that was swept, and how the sweep that found it went.
sweep_table() {
    local file folder sweeps rows currency
    need_evidence leaderboard.json "scripts/evidence/evidence.sh sweep" || return 0
    folder=$(dirname "$file")
    sweeps=$folder/sweeps.jsonl
    if [[ -s $sweeps ]]; then read_json sweep "$sweeps" >/dev/null; else sweeps=/dev/null; fi
    read_json board "$file" >/dev/null
    head_of "$file" "scripts/evidence/evidence.sh sweep" || return 0
    jqf report/sweep -r --slurpfile sweeps "$sweeps" --slurpfile today "$rows" --arg folder "$folder" "$file"
}

# What was tried against the bench: one summary with "what" per file, from the tools that the table names. A cheat or
# fault counts once: as caught where any device caught it, as missed where one missed it. Why compute-sanitizer reports
# something in a kernel of ours stands in tests/sanitize_explained.tsv: kernel, tool, why, by tabs. A set that has grown
# since it was tried is said to have.
robustness_table() {
    local wrong=tests/wrong/wrong.tsv cheats=tests/cheats/run.sh there='{}'
    [[ ! -e $wrong || ! -e $cheats ]] || there=$(jq -n --argjson cuda "$(wc -l <$wrong)" \
        --argjson emu "$(grep -cv $'\tgpu$' $wrong)" \
        --argjson cheats "$(grep -cE '^    "\w+ (any|gpu|none) ' $cheats)" '$ARGS.named')
    local files=()
    mapfile -t files < <(find evidence -mindepth 2 -maxdepth 2 \
        \( -path 'evidence/robustness/*.json' -o -name sanitize.json -o -name conform.json \) 2>/dev/null | sort)
    if [[ ${#files[@]} -eq 0 ]]; then
        echo "No summaries under evidence/robustness/ yet."
        return
    fi
    local file
    for file in "${files[@]}"; do
        read_json any "$file" >/dev/null
    done
    jqf report/robustness -rs --argjson there "$there" \
        --rawfile explained <(cat tests/sanitize_explained.tsv 2>/dev/null || true) "${files[@]}"
}
