#!/usr/bin/env bash
# Rewrites the tables of README.md between their markers, from the registry and evidence/.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/readme_tables.sh [--check] [--help]
Rewrites the tables between "<!-- NAME:begin" and "<!-- NAME:end -->" in README.md. --check: exit 1 when they are not current.
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

kernels_table() {
    local bench=${FA_BENCH:-./fa_bench}
    echo "| kernel | idea | default tile | tensor cores | emulated |"
    echo "|---|---|---|---|---|"
    "$bench" --list-kernels --json - | jq -r '.[] | select(.variant_of == null) | "| `\(.name)`\(if .default then " (default)" else "" end) | \(.idea) | \(
        if .defaults then "m=\(.defaults.m) n=\(.defaults.n) warps=\(.defaults.warps) vec=\(.defaults.vec) stages=\(.defaults.stages)" else "library" end) | \(
        .tensor_cores) | \(if .emulated then "yes" else "no" end) |"'
}

# README.md on stdout, with what stands between the markers of NAME replaced by the table.
replace() { # NAME TABLE
    awk -v name="$1" -v table="$2" '
        index($0, "<!-- " name ":begin") == 1 {print; print table; skip = 1; next}
        index($0, "<!-- " name ":end") == 1 {skip = 0}
        !skip {print}'
}

new=$(replace kernels "$(kernels_table)" <README.md)

if [[ $check -eq 1 ]]; then
    diff <(printf '%s\n' "$new") README.md || { echo "README.md: tables are not current: run scripts/readme_tables.sh" >&2; exit 1; }
else
    printf '%s\n' "$new" >README.md.tmp && mv README.md.tmp README.md
fi
