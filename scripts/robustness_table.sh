#!/usr/bin/env bash
# The figures of what was tried against the bench and did not get through, from the summaries under evidence/robustness/.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: scripts/robustness_table.sh [--help]
Prints a Markdown table from evidence/robustness/*.json. Each file is one summary with "what":
  cheats    scripts/cheats.sh --json, one file per device       faults   scripts/faults.sh --json
  fuzz      tests/fuzz/run.sh --json                            controls, mutants   {"what", "caught", "missed", "note"}
A cheat or fault counts once: as caught where any device caught it, as missed where one missed it. scripts/readme_tables.sh puts it into the README.
EOT
}

case ${1:-} in
    "") ;;
    --help) usage; exit 0 ;;
    *) echo "robustness_table.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
shopt -s nullglob
files=(evidence/robustness/*.json)
if [[ ${#files[@]} -eq 0 ]]; then
    echo "No summaries under evidence/robustness/ yet."
    exit 0
fi
jq -rs '
    def of($what): map(select(.what == $what));
    def word($v): map(.verdict) | if index($v.bad) then "bad" elif index($v.good) then "good" else "not run" end;
    def tally($v): group_by(.name) | map({name: .[0].name, is: word($v), count: (map(select(.verdict == $v.good) | .count // 1) | max // 0)});
    def not_run: map(select(.is == "not run").name) | if length > 0 then "; not run: " + join(", ") else "" end;
    def share: "\(map(select(.is == "good")) | length) of \(map(select(.is != "not run")) | length)";
    def simple($what; $title): of($what) | if length == 0 then empty else
        "| \($title) | \(map(.caught) | add) of \(map(.caught + .missed) | add) caught | \(map(.note // "") | join(" ")) |" end;
    "| what | result | how |", "|---|---|---|",
    simple("controls"; "negative controls of the race detector"), simple("mutants"; "barriers and waits taken out of the kernels"),
    (of("cheats") | if length == 0 then empty else (map(.device) | unique | join(", ")) as $devices | [.[].cheats[]] | tally({good: "CAUGHT", bad: "MISSED"}) |
        "| cheats (`tests/cheats`) | \(share) caught | `scripts/cheats.sh` on \($devices)\(not_run) |" end),
    (of("faults") | if length == 0 then empty else [.[].faults[]] | tally({good: "SURVIVED", bad: "FAILED"}) |
        "| faults | \(map(.count) | add) survived, \(share) kinds | `scripts/faults.sh`, \(map(select(.name | startswith("kill_")).count) | add // 0) of them `kill -9`\(not_run) |" end),
    (of("fuzz") | if length == 0 then empty else [.[].targets[] | select(.verdict != "NOT-RUN")] |
        "| fuzz executions | \(map(.executions) | add), \(map(select(.verdict == "FAIL")) | length) findings | \(map("\(.name) \(.executions)") | join(", ")); `make fuzz` |" end)
' "${files[@]}"
