# shellcheck shell=bash disable=SC2154 # $bench is of common.sh
# The README's tables in Markdown, from the registry and evidence/. Sourced by scripts/report.sh; a function prints one.

kernels_table() {
    echo "| kernel | idea | default tile | tensor cores | emulated |"
    echo "|---|---|---|---|---|"
    "$bench" --list-kernels --json - | jqf report/kernels -r
}

# The file of the first folder of evidence/ that has it; nothing while none has.
evidence_of() { # FILE
    find evidence -mindepth 2 -maxdepth 2 -name "$1" -size +2c 2>/dev/null | sort | head -n 1
}

# Which commit was measured, and which kernels' sources have changed since. Standard input: lines "commit kernel
# source-sha256", the kernel as its file is called, "null" where a library has no source.
measured_at() {
    local lines commits kernel sha arch now changed='' registry
    registry=$("$bench" --list-kernels --json -)
    lines=$(sort -u)
    commits=$(awk '{print "`" $1 "`"}' <<<"$lines" | sort -u | paste -sd, | sed 's/,/, /g')
    while read -r kernel sha; do
        arch=$(jq -r --arg k "$kernel" \
            '.[] | select(.name == $k and .arch_specific) | "--arch sm_\(.min_arch)a"' <<<"$registry")
        # A grid that fills any device: no variant for small ones serves it in the kernel's place.
        # shellcheck disable=SC2086
        now=$("$bench" --kernel "$kernel" --batch 64 --heads 64 $arch --compile-only --quiet --json - 2>/dev/null |
            jq -r '.provenance.source_sha256' || true)
        [[ $now == "$sha" ]] || changed+="${changed:+, }\`$kernel\`"
    done < <(awk '$3 != "null" {print $2, $3}' <<<"$lines" | sort -u)
    printf 'Measured at commit %s%s.\n\n' "$commits" "${changed:+; changed since, so to be measured again: $changed}"
}

# Lines for measured_at from the rows of a table of evidence.
rows_measured() { # FILE
    jq -r '.[] | "\(.git) \(.variant // .kernel) \(.source_sha256)"' "$1" | measured_at
}

ladder_table() {
    local file folder
    file=$(evidence_of ladder.json)
    if [[ -z $file ]]; then
        echo "No ladder.json under evidence/ yet: \`scripts/evidence.sh ladder\` on a GPU makes it."
        return
    fi
    folder=$(dirname "$file")
    find "$folder/ladder" -name '*.json' -exec jq -r \
        '"\(.provenance.git) \(.variant // .kernel) \(.provenance.source_sha256)"' {} + 2>/dev/null | measured_at
    jqf report/ladder -r --arg folder "$folder" "$file"
}

# peers.json, and peers_KERNEL.json beside it.
peers_table() {
    local file main
    main=$(evidence_of peers.json)
    if [[ -z $main ]]; then
        echo "No peers.json under evidence/ yet: \`scripts/peers.sh\` on a GPU makes it."
        return
    fi
    for file in "$main" "${main%.json}"_*.json; do
        [[ -s $file ]] || continue
        [[ $file == "$main" ]] || echo
        rows_measured "$file"
        jqf report/peers -r --arg file "$file" "$file"
    done
}

versus_table() {
    local file
    file=$(evidence_of versus.json)
    if [[ -z $file ]]; then
        echo "No versus.json under evidence/ yet: \`scripts/evidence.sh versus\` on a GPU makes it."
        return
    fi
    rows_measured "$file"
    jqf report/versus -r --arg file "$file" "$file"
}

# The tiles that lead on the canonical problem, and how the sweeps that found them went.
sweep_table() {
    local file folder sweeps
    file=$(evidence_of leaderboard.json)
    if [[ -z $file ]]; then
        echo "No leaderboard.json under evidence/ yet: \`scripts/evidence.sh sweep\` on a GPU makes it."
        return
    fi
    folder=$(dirname "$file")
    sweeps=$folder/sweeps.jsonl
    [[ -s $sweeps ]] || sweeps=/dev/null
    jqf report/sweep_measured -r "$file" | measured_at
    jqf report/sweep -r --slurpfile sweeps "$sweeps" --arg folder "$folder" "$file"
}

# What was tried against the bench: one summary with "what" per file, from the tools that the table names. A cheat or
# fault counts once: as caught where any device caught it, as missed where one missed it. Why compute-sanitizer reports
# something in a kernel of ours stands in tests/sanitize_explained.tsv: kernel, tool, why, by tabs.
robustness_table() {
    local files=()
    mapfile -t files < <(find evidence -mindepth 2 -maxdepth 2 \
        \( -path 'evidence/robustness/*.json' -o -name sanitize.json -o -name conform.json \) 2>/dev/null | sort)
    if [[ ${#files[@]} -eq 0 ]]; then
        echo "No summaries under evidence/robustness/ yet."
        return
    fi
    jqf report/robustness -rs --rawfile explained <(cat tests/sanitize_explained.tsv 2>/dev/null || true) "${files[@]}"
}
