# Summaries of what was tried against the bench, as tables of the documents. $explained: tests/sanitize_explained.tsv.
# $there: how many wrong kernels (cuda, emu) and cheats there are today, where that is known.
include "report/numbers";
def of($what): map(select(.what == $what));
def word($v): map(.verdict) | if index($v.bad) then "bad" elif index($v.good) then "good" else "not run" end;
def tally($v): group_by(.name) | map({name: .[0].name, is: word($v),
    count: (map(select(.verdict == $v.good) | .count // 1) | max // 0)});
def not_run: map(select(.is == "not run").name) | if length > 0 then "; not run: " + join(", ") else "" end;
def share: "\(map(select(.is == "good")) | length) of \(map(select(.is != "not run")) | length)";
def row_of($what; f): of($what) | if length == 0 then empty else f | row end;
def total(f): map(f) | add // 0;
def of_kernels(f): total(.kernels | map(f) | add);
def caught: "\(total(.caught)) of \(total(.caught + .missed)) caught";
def clean: "\(of_kernels(.passed)) of \(of_kernels(.passed + .failed))";
def gpus: map(.gpu) | unique | join(", ");
def since($tried; $now): if ($now // $tried) != $tried then "; today's set has \($now)" else "" end;
def killed: map(select(.name | startswith("kill_")).count) | add // 0;
def explained: $explained | split("\n") | map(select(length > 0 and (startswith("#") | not)) | split("\t") |
    {("\(.[0]) \(.[1])"): .[2]}) | add // {};

"| what | result | how |", "|---|---|---|",
row_of("controls"; ["negative controls (`tests/emu/controls`): kernels wrong in one way", caught,
    "\(total(.runs)) runs, each with its class and line; `tests/emu/controls.sh`"]),
row_of("mutants"; ["mutants: a barrier or wait fewer in a built-in kernel", caught,
    "\(map(.kernels[] | "`\(.kernel)` \(.caught) of \(.of)") | join(", ")); `tests/emu/mutants.sh`"]),
row_of("hopper_mutants"; ["mutants of the Hopper kernels: wrong in one way, on the emulator", caught,
    "\(map(.kernels[] | "`\(.kernel)` \(.caught) of \(.of)") | join(", "))" +
    (if total(.known) > total(.caught + .missed) then ", a sample of \(total(.known))" else "" end) +
    "; `tests/emu/hopper_mutants.sh`"]),
(of("wrong")[] | ["wrong kernels on \(.gpu // "the emulator"): one fault each",
    "\(.gate) of \(.kernels) caught by the gate",
    (if .ordinary == null then "the gate alone" else "\(.ordinary) by an ordinary run" end) +
        "\(since(.kernels; $there[.device])); " +
        "`tests/wrong/run.sh\(if .device == "cuda" then " --gpu" else "" end)`"] | row),
row_of("judge_mutants"; ["mutants of the judge: a token changed in a pure module",
    "\(total(.killed)) of \(total(.killed + .survived)) killed by unit tests",
    "seed \(map(.seed) | join(", ")); besides \(total(.equivalent)) that change nothing, each with its reason; " +
    "`tests/mutate.py`"]),
row_of("race_controls"; ["controls of the race detector (`tests/emu/race`): kernels with a race, and without",
    "\(total(.missed | length)) of \(total(.racy)) missed, \(total(.accused | length)) of \(total(.clean)) accused",
    "\(total(.runs)) runs, under every schedule; `tests/emu/race.sh`"]),
row_of("race"; ["problem matrix under the race detector", "\(clean) clean",
    "\(map(.kernels[].kernel) | unique | length) kernels; `scripts/ci_gate.sh --race`"]),
row_of("conform"; ["primitives, emulator beside \(gpus)",
    "\(total(.passed)) of \(total(.passed + .failed)) files give the same words",
    "`tests/emu/conform`; `scripts/ci_gate.sh`"]),
row_of("sanitize"; ["compute-sanitizer on \(gpus)", "\(clean) runs clean",
    (map(.tools[] | "\(.tool) \(.passed) of \(.passed + .failed)") | join(", ")) +
    (of_kernels(.not_run // 0) | if . > 0 then "; \(.) not run" else "" end) + "; `scripts/ci_gate.sh --sanitize`"]),
row_of("cheats"; (map(.device) | unique | join(", ")) as $devices | [.[].cheats[]] |
    tally({good: "CAUGHT", bad: "MISSED"}) |
    ["cheats (`tests/cheats`)", "\(share) caught",
        "`tests/cheats/run.sh` on \($devices)\(not_run)\(since(length; $there.cheats))"]),
row_of("faults"; [.[].faults[]] | tally({good: "SURVIVED", bad: "FAILED"}) |
    ["faults", "\(map(.count) | add) survived, \(share) kinds",
        "`tests/faults/run.sh`, \(killed) of them `kill -9`\(not_run)"]),
row_of("asan"; ["the driver under ASan, UBSan, LeakSanitizer",
    "\(total(.passed)) tests passed, \(total(.failed)) failed",
    "suites \(map(.suites) | join(", ")); `tests/asan.sh`"]),
row_of("fuzz"; [.[].targets[] | select(.verdict != "NOT-RUN")] | ["fuzz executions",
    "\(map(.executions) | add), \(map(select(.verdict == "FAIL")) | length) findings",
    "\(map("\(.name) \(.executions)") | join(", ")); `make fuzz`"]),

# What a tool found (exit 9); not what cannot run there.
(of("sanitize") | map(.not_passed[]? | select(.verdict == "failed" or (.code // 9) == 9)) |
    if length == 0 then empty else
        "", "What compute-sanitizer reports, and how far that is ours:", "",
        "| kernel | tool | runs | |", "|---|---|---|---|",
        (group_by([.kernel, .tool, .verdict])[] | (.[0].verdict == "skipped") as $skipped |
            [(.[0].kernel | code), .[0].tool, "\(length)\(if $skipped then ", not counted" else "" end)",
            (explained["\(.[0].kernel) \(.[0].tool)"] // if $skipped then .[0].why else "not explained" end)] | row)
    end),
(of("mutants") | map(.survivors[]) |
    if length == 0 then empty else
        "", "Mutants that survive, and why they may:", "",
        "| kernel | what is taken out | why nothing is wrong, or nothing sees it |", "|---|---|---|",
        (group_by([.file, .function, .statement, .number])[] |
            [(map(.kernel) | names), "`\(.[0].statement)` in `\(.[0].function)` (\(.[0].file))", .[0].why] | row)
    end)
