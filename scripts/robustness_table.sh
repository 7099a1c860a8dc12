#!/usr/bin/env bash
# The figures of what was tried against the bench and did not get through, from the summaries under evidence/robustness/.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: scripts/robustness_table.sh [--help]
Prints a Markdown table from evidence/robustness/*.json, evidence/GPU/sanitize.json and evidence/GPU/conform.json. Each is one summary with "what":
  cheats    scripts/cheats.sh, one file per device     faults    scripts/faults.sh, one file per device
  controls  tests/emu/controls.sh                      mutants   tests/emu/mutants.sh, and a second table of those that survive
  race      scripts/ci_gate.sh --race                  fuzz      tests/fuzz/run.sh
  sanitize  scripts/ci_gate.sh --sanitize              conform   scripts/ci_gate.sh, on a GPU
  asan      tests/asan.sh
Why a tool of compute-sanitizer reports something in a kernel of ours stands in tests/sanitize_explained.tsv: kernel, tool, why, by tabs.
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
files=(evidence/robustness/*.json evidence/*/sanitize.json evidence/*/conform.json)
if [[ ${#files[@]} -eq 0 ]]; then
    echo "No summaries under evidence/robustness/ yet."
    exit 0
fi
jq -rs --rawfile explained <(cat tests/sanitize_explained.tsv 2>/dev/null || true) '
    def of($what): map(select(.what == $what));
    def word($v): map(.verdict) | if index($v.bad) then "bad" elif index($v.good) then "good" else "not run" end;
    def tally($v): group_by(.name) | map({name: .[0].name, is: word($v), count: (map(select(.verdict == $v.good) | .count // 1) | max // 0)});
    def not_run: map(select(.is == "not run").name) | if length > 0 then "; not run: " + join(", ") else "" end;
    def share: "\(map(select(.is == "good")) | length) of \(map(select(.is != "not run")) | length)";
    def row($what; f): of($what) | if length == 0 then empty else f end;
    def total(f): map(f) | add // 0;
    "| what | result | how |", "|---|---|---|",
    row("controls"; "| negative controls (`tests/emu/controls`): kernels wrong in one way | \(total(.caught)) of \(total(.caught + .missed)) caught | \(total(.runs)) runs, each with its class and line; `tests/emu/controls.sh` |"),
    row("mutants"; "| mutants: a barrier or wait fewer in a built-in kernel | \(total(.caught)) of \(total(.caught + .missed)) caught | \(map(.kernels[] | "`\(.kernel)` \(.caught) of \(.of)") | join(", ")); `tests/emu/mutants.sh` |"),
    row("race"; "| problem matrix under the race detector | \(total(.kernels | map(.passed) | add)) of \(total(.kernels | map(.passed + .failed) | add)) clean | \(map(.kernels[].kernel) | unique | length) kernels; `scripts/ci_gate.sh --race` |"),
    row("conform"; "| primitives, emulator beside \(map(.gpu) | unique | join(", ")) | \(total(.passed)) of \(total(.passed + .failed)) files give the same words | `tests/emu/conform`; `scripts/ci_gate.sh` |"),
    row("sanitize"; "| compute-sanitizer on \(map(.gpu) | unique | join(", ")) | \(total(.kernels | map(.passed) | add)) of \(total(.kernels | map(.passed + .failed) | add)) runs clean | \(map(.tools[] | "\(.tool) \(.passed) of \(.passed + .failed)") | join(", "))\(total(.kernels | map(.not_run // 0) | add) as $left | if $left > 0 then "; \($left) not run" else "" end); `scripts/ci_gate.sh --sanitize` |"),
    (of("cheats") | if length == 0 then empty else (map(.device) | unique | join(", ")) as $devices | [.[].cheats[]] | tally({good: "CAUGHT", bad: "MISSED"}) |
        "| cheats (`tests/cheats`) | \(share) caught | `scripts/cheats.sh` on \($devices)\(not_run) |" end),
    (of("faults") | if length == 0 then empty else [.[].faults[]] | tally({good: "SURVIVED", bad: "FAILED"}) |
        "| faults | \(map(.count) | add) survived, \(share) kinds | `scripts/faults.sh`, \(map(select(.name | startswith("kill_")).count) | add // 0) of them `kill -9`\(not_run) |" end),
    row("asan"; "| the driver under ASan, UBSan, LeakSanitizer | \(total(.passed)) tests passed, \(total(.failed)) failed | suites \(map(.suites) | join(", ")); `tests/asan.sh` |"),
    (of("fuzz") | if length == 0 then empty else [.[].targets[] | select(.verdict != "NOT-RUN")] |
        "| fuzz executions | \(map(.executions) | add), \(map(select(.verdict == "FAIL")) | length) findings | \(map("\(.name) \(.executions)") | join(", ")); `make fuzz` |" end),
    # What a tool found (exit 9); not what cannot run there.
    (of("sanitize") | map(.not_passed[]? | select(.verdict == "failed" or (.code // 9) == 9)) | if length == 0 then empty else
        ($explained | split("\n") | map(select(length > 0 and (startswith("#") | not)) | split("\t") | {("\(.[0]) \(.[1])"): .[2]}) | add // {}) as $because |
        "", "What compute-sanitizer reports, and how far that is ours:", "", "| kernel | tool | runs | |", "|---|---|---|---|",
        (group_by([.kernel, .tool, .verdict])[] | "| `\(.[0].kernel)` | \(.[0].tool) | \(length)\(if .[0].verdict == "skipped" then ", not counted" else "" end) | " +
            "\($because["\(.[0].kernel) \(.[0].tool)"] // (if .[0].verdict == "skipped" then .[0].why else "not explained" end)) |") end),
    (of("mutants") | map(.survivors[]) | if length == 0 then empty else
        "", "Mutants that survive, and why they may:", "", "| kernel | what is taken out | why nothing is wrong, or nothing sees it |", "|---|---|---|",
        (group_by([.file, .function, .statement, .number])[] | "| \(map("`\(.kernel)`") | unique | join(", ")) | `\(.[0].statement)` in `\(.[0].function)` (\(.[0].file)) | \(.[0].why) |") end)
' "${files[@]}"
