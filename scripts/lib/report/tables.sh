# shellcheck shell=bash disable=SC2154 # $bench and flag are of common.sh
# The documents' tables in Markdown, from the registry and evidence/. Sourced by report.sh; a function per
# table.
pages=(README.md docs/kernels.md evidence/README.md) # that have tables

kernels_table() {
    echo "| kernel | idea | default tile | tensor cores | architecture | emulated |"
    echo "|---|---|---|---|---|---|"
    "$bench" --list-kernels --json - | jqf report/kernels -r
}

# The file of the first folder of evidence/ that has it becomes $file; fails while none has, saying what makes it.
need_evidence() { # FILE COMMAND
    file=$(find evidence -mindepth 2 -maxdepth 2 -name "$1" -size +2c 2>/dev/null | sort | head -n 1)
    [[ -n $file ]] || { echo "No $1 under evidence/ yet: \`$2\` on a GPU makes it."; return 1; }
}

# Which commits were measured, and of which kernels the machine code is another by now (evidence_current.sh).
# --check compiles two rows of a table that its page calls current, and none of another; with --no-compile none at all.
measured_at() { # FILE
    local commits said
    commits=$(jqf report/commits -r "$1")
    said=$(awk -v begin="Measured at commit $commits" '
        $0 == begin "." || $0 == begin ";" {
            text = $0
            while ((getline line) > 0 && line != "") text = text "\n" line
            seen[text] = 1
        }
        END {
            for (text in seen) count++
            if (count == 1) print text
        }' "${pages[@]}")
    if [[ ${flag[check]} -eq 1 && -n $said ]] &&
        { [[ $said != "Measured at commit $commits." || ${flag[no-compile]} -eq 1 ]] || are_current "$1"; }; then
        printf '%s\n\n' "$said"
        return
    fi
    scripts/evidence/evidence_current.sh --rows "$1" | jqf report/measured -rs --arg commits "$commits"
}

are_current() { # FILE: two of its rows
    scripts/evidence/evidence_current.sh --sample 2 --rows "$1" | jq -es 'all(.[]; .current)' >/dev/null
}

ladder_table() {
    local file folder
    need_evidence ladder.json "scripts/evidence/evidence.sh ladder" || return 0
    folder=$(dirname "$file")
    measured_at "$file"
    jqf report/ladder -r --arg folder "$folder" "$file"
}

# versus.json in a few lines, and what is beside it.
summary_table() {
    local file folder beside=() name other
    need_evidence versus.json "scripts/evidence/evidence.sh versus" || return 0
    folder=$(dirname "$file")
    for name in fa4 serving; do
        other=$folder/peers_$name.json
        [[ -s $other ]] || other=/dev/null
        beside+=(--slurpfile "$name" "$other")
    done
    measured_at "$file"
    jqf report/summary -r --arg folder "$(basename "$folder")" "${beside[@]}" "$file"
}

# peers.json, and peers_KERNEL.json beside it.
peers_table() {
    local file main
    need_evidence peers.json "scripts/peers.sh" || return 0
    main=$file
    for file in "$main" "${main%.json}"_*.json; do
        [[ -s $file ]] || continue
        [[ $file == "$main" ]] || echo
        measured_at "$file"
        jqf report/peers -r --arg file "$file" "$file"
    done
}

versus_table() {
    local file
    need_evidence versus.json "scripts/evidence/evidence.sh versus" || return 0
    measured_at "$file"
    jqf report/versus -r --arg file "$file" "$file"
}

# The tiles that lead on the canonical problem, and how the sweeps that found them went.
sweep_table() {
    local file folder sweeps
    need_evidence leaderboard.json "scripts/evidence/evidence.sh sweep" || return 0
    folder=$(dirname "$file")
    sweeps=$folder/sweeps.jsonl
    [[ -s $sweeps ]] || sweeps=/dev/null
    measured_at "$file"
    jqf report/sweep -r --slurpfile sweeps "$sweeps" --arg folder "$folder" "$file"
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
    jqf report/robustness -rs --argjson there "$there" \
        --rawfile explained <(cat tests/sanitize_explained.tsv 2>/dev/null || true) "${files[@]}"
}
