#!/usr/bin/env bash
# Rewrites the tables of README.md between their markers, from the registry and evidence/.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/readme_tables.sh [--check] [--help]
Rewrites the tables between "<!-- NAME:begin" and "<!-- NAME:end -->" in README.md. --check: exit 1 when they are not current.
Which rows were measured with machine code that is another now is found by compiling them (scripts/evidence_current.sh);
--check compiles two rows of each table that calls itself current, and no other.
EOF
}

check=0
case ${1:-} in
    --check) check=1 ;;
    --help) usage; exit 0 ;;
    "") ;;
    *) usage >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bench=${FA_BENCH:-./fa_bench}
registry=$("$bench" --list-kernels --json -)

kernels_table() {
    echo "| kernel | idea | default tile | tensor cores | emulated |"
    echo "|---|---|---|---|---|"
    jq -r '.[] | select(.variant_of == null) | "| `\(.name)`\(if .default then " (default)" else "" end) | \(.idea) | \(
        if .defaults then "m=\(.defaults.m) n=\(.defaults.n) warps=\(.defaults.warps) vec=\(.defaults.vec) stages=\(.defaults.stages)" else "library" end) | \(
        .tensor_cores) | \(if .emulated then "yes" else "no" end) |"' <<<"$registry"
}

# Of the first folder of evidence/ that has the file; a sentence while none has.
evidence_of() { # FILE
    find evidence -mindepth 2 -maxdepth 2 -name "$1" -size +2c 2>/dev/null | sort | head -n 1
}

# Which commits were measured, and of which kernels the machine code is another by now (scripts/evidence_current.sh).
measured_at() { # FILE
    local commits said
    commits=$(jq -r '[.. | objects | select(has("code_sha256")).git | values] | unique | map("`\(.)`") | join(", ")' "$1")
    said=$(grep -F "Measured at commit $commits" README.md | sort -u || true)
    if [[ $check -eq 1 && -n $said && $said != *$'\n'* ]] && { [[ $said != "Measured at commit $commits." ]] ||
        scripts/evidence_current.sh --sample 2 --rows "$1" | jq -es 'all(.[]; .current)' >/dev/null; }; then
        printf '%s\n\n' "$said"
        return
    fi
    scripts/evidence_current.sh --rows "$1" | jq -rs --arg commits "$commits" '
        (group_by(.kernel) | map(select(any(.[]; .current | not)) |
            "`\(.[0].kernel)` (\(map(select(.current | not)) | length) of \(length) rows)") | join(", ")) as $changed |
        "Measured at commit \($commits)" +
        if $changed == "" then "." else "; machine code changed since, so to be measured again: \($changed)." end, ""'
}

ladder_table() {
    local file
    file=$(evidence_of ladder.json)
    [[ -n $file ]] || { echo "No ladder.json under evidence/ yet: \`scripts/evidence.sh ladder\` on a GPU makes it."; return; }
    measured_at "$file"
    jq -r --arg folder "$(dirname "$file")" 'def n: if . >= 100 then round elif . >= 10 then . * 10 | round / 10 else . * 100 | round / 100 end;
        map(select(.p50_us != null)) | (map(.problem) | unique_by(split(",") | map(tonumber) | .[0] * .[1] * .[2] * .[2] * .[3])) as $problems |
        (map(.kernel) | unique) as $kernels | . as $all |
        "p50 in us, TFLOP/s, and times as fast as the kernel named under \"over\" (by `--vs`), each kernel at its own best tile; full attention, B,H,S,D (-: not measured); records in `\($folder)/ladder/`.", "",
        "| kernel | over | \($problems | join(" | ")) |", "|---|---|\($problems | map("---") | join("|"))|",
        ([$kernels[] as $k | {k: $k, cells: [$problems[] as $p | [$all[] | select(.kernel == $k and .problem == $p)][0]]}] |
            sort_by(-(.cells | map(.p50_us // 0) | first)) | .[] | "| `\(.k)` | \(.cells | map(.vs // empty) | unique | map("`\(.)`") | join(", ")) | " +
            "\(.cells | map(if . then "\(.p50_us | n) (\(.tflops | n))\(if .ratio then ", \(.ratio | n)x" else "" end)" else "-" end) | join(" | ")) |")' "$file"
}

# peers.json, and peers_KERNEL.json beside it.
peers_table() {
    local file main
    main=$(evidence_of peers.json)
    [[ -n $main ]] || { echo "No peers.json under evidence/ yet: \`scripts/peers.sh\` on a GPU makes it."; return; }
    for file in "$main" "${main%.json}"_*.json; do
        [[ -s $file ]] || continue
        [[ $file == "$main" ]] || echo
        measured_at "$file"
        jq -r --arg file "$file" 'def n: if . == null then "-" else . * 100 | round / 100 end;
            def mean: if . == [] then null else (map(log) | add / length | exp) end;
            map(select(.ratio != null)) | (if all(.[]; .peers.fa3) then "fa3" else "fa3_scaled" end) as $fa3 | map(.paired_ratio | values) as $paired | "\(map("`\(.kernel)`") | unique | join(", ")): best peer / ours (above 1: ours is faster), geometric mean \(map(.ratio) | mean | n) over \(length) shapes; every shape in `\($file)`.",
            (if $paired == [] then empty else "Alone, each is timed by itself, at the clock that its own power leaves it; paired, peer and kernel are timed in one process, A B B A, so at the same clock and temperature: geometric mean of the least ratio \($paired | mean | n) over \($paired | length) shapes." end), "",
            "| head dim | mask | shapes | over FlashAttention 2 | over cuDNN | over FlashAttention 3\(if $fa3 == "fa3" then "" else " (scaled)" end) | over the best |\(if $paired == [] then "" else " over the best, paired |" end)", "|---|---|---|---|---|---|---|\(if $paired == [] then "" else "---|" end)",
            (group_by([.dim, .causal]) | .[] | "| \(.[0].dim) | \(if .[0].causal then "causal" else "full" end) | \(length) | " +
                (. as $rows | ["fa2", "cudnn", $fa3] | map(. as $p | [$rows[] | select(.peers[$p] != null) | .peers[$p] / .us] | mean | n | tostring) | join(" | ")) + " | \(map(.ratio) | mean | n) |\(if $paired == [] then "" else " \(map(.paired_ratio | values) | mean | n) |" end)")' "$file"
    done
}

versus_table() {
    local file
    file=$(evidence_of versus.json)
    [[ -n $file ]] || { echo "No versus.json under evidence/ yet: \`scripts/evidence.sh versus\` on a GPU makes it."; return; }
    measured_at "$file"
    jq -r --arg file "$file" 'def n: if . == null then "-" else . * 100 | round / 100 end;
        def mean: if . == [] then null else (map(log) | add / length | exp) end;
        def cell: if . == [] then "-" else "\(mean | n) (\(min | n))" end;
        map(select(.ratio != null) | .over_fa3 = (if .fa3_scaled then .fa3_scaled / .p50_us else null end) | .best = ([.ratio, .over_fa3] | map(values) | min) |
            .dim = (.problem | split(" ")[0] | split(",")[3] | tonumber) | .mask = (if .problem | endswith("causal") then "causal" else "full" end)) as $rows |
        (map(.vs // empty) | unique | map("`\(.)`") | join(", ")) as $library |
        (map(.vs_compiler // empty) | unique | join(", ") | if . == "" then "" else " (\(.))" end) as $version |
        "By `--vs` in one process, A B B A, so at the same clocks: times as fast, geometric mean and in brackets the least; FlashAttention 3 is its time in the table of `scripts/peers_grid.json` x the time of \($library)\($version) here / that of cuDNN there. Every shape in `\($file)`.", "",
        "| kernel | head dim | mask | shapes | over \($library) | over FlashAttention 3 (scaled) | over the best | ahead |", "|---|---|---|---|---|---|---|---|",
        ($rows | group_by([.kernel, .dim, .mask == "causal"]) | .[] | "| `\(.[0].kernel)` | \(.[0].dim) | \(.[0].mask) | \(length) | " +
            "\(map(.ratio) | cell) | \(map(.over_fa3 | values) | cell) | \(map(.best) | cell) | \(map(select(.best >= 1)) | length) |"),
        (map(select(.ratio == null)) | .[] | "| `\(.kernel)` | \(.problem): \(.status) | | | | | | |")' "$file"
}

# The tiles that lead on the canonical problem, and how the sweeps that found them went.
sweep_table() {
    local file sweeps
    file=$(evidence_of leaderboard.json)
    [[ -n $file ]] || { echo "No leaderboard.json under evidence/ yet: \`scripts/evidence.sh sweep\` on a GPU makes it."; return; }
    sweeps=$(dirname "$file")/sweeps.jsonl
    [[ -s $sweeps ]] || sweeps=/dev/null
    measured_at "$file"
    jq -r --slurpfile sweeps "$sweeps" --arg folder "$(dirname "$file")" '
        (map(select(.group | endswith("|2,8,8,512,512,64,full|fp32")))[0] // .[0]) as $g |
        "Best tiles of (\($g.group | split("|")[2] | gsub(",(?=[a-z])"; ") ")) on \($g.group | split("|")[0]), each found by `scripts/evo_sweep.sh`; log and leaderboard in `\($folder)/`.", "",
        "| kernel | tile | p50 us | registers | shared bytes | candidates | a second |", "|---|---|---|---|---|---|---|",
        ($g.kernels | to_entries | sort_by(-(.value.p50_us // 0)) | .[] | .key as $k | .value as $v | ([$sweeps[] | select(.kernel == $k and .group == $g.group and .measured > 0)] | last) as $s |
            "| `\($k)`\(if $g.leader == $k then " (leads)" else "" end) | \($v.knobs | gsub(","; " ")) | \($v.p50_us | . * 100 | round / 100) | \($v.registers // "-") | \($v.smem_bytes // "-") | \($s.candidates // "-") | \($s.per_second // "-") |")' "$file"
}

# README.md on stdout, with what stands between the markers of NAME replaced by the table.
replace() { # NAME TABLE
    awk -v name="$1" -v table="$2" '
        index($0, "<!-- " name ":begin") == 1 {print; print table; skip = 1; next}
        index($0, "<!-- " name ":end") == 1 {skip = 0}
        !skip {print}'
}

# Each on its own line: a table that cannot be made ends the script.
kernels=$(kernels_table)
ladder=$(ladder_table)
peers=$(peers_table)
versus=$(versus_table)
sweep=$(sweep_table)
robustness=$(scripts/robustness_table.sh)
new=$(replace kernels "$kernels" <README.md | replace ladder "$ladder" | replace peers "$peers" | replace versus "$versus" | replace sweep "$sweep" | replace robustness "$robustness")

if [[ $check -eq 1 ]]; then
    diff <(printf '%s\n' "$new") README.md || { echo "README.md: tables are not current: run scripts/readme_tables.sh" >&2; exit 1; }
else
    printf '%s\n' "$new" >README.md.tmp && mv README.md.tmp README.md
fi
