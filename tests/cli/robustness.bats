#!/usr/bin/env bats
# The evidence of robustness: who makes it, and the table it becomes.
load helper

@test "every part is a script of the tree, and bad arguments are refused" {
    run -0 scripts/evidence/evidence.sh robustness --dry-run
    [ "${#lines[@]}" -eq 11 ]
    for line in "${lines[@]}"; do [ -x "${line%% *}" ]; done
    refused 2 "unknown argument nosuch" scripts/evidence/evidence.sh nosuch
    FA_BENCH=$work/none refused 4 "run make" scripts/evidence/evidence.sh controls
}

@test "the table counts what was caught, and names each mutant that survives" {
    mkdir -p "$work/tree/evidence/robustness" "$work/tree/evidence/gpu"
    cp -r scripts "$work/tree/"
    local e=$work/tree/evidence
    echo '{"what": "controls", "caught": 3, "missed": 1, "runs": 9,
        "made": {"date": "2026-11-25", "git": "abc1234"}}' >"$e/robustness/controls.json"
    echo '{"what": "mutants", "caught": 5, "missed": 1, "known": 68,
        "kernels": [{"kernel": "one", "caught": 5, "of": 6}],
        "survivors": [{"kernel": "one", "file": "one.cu", "function": "add", "statement": "__syncwarp();", "number": 2,
        "why": "nobody reads after it"}]}' >"$e/robustness/mutants.json"
    echo '{"what": "hopper_mutants", "caught": 6, "missed": 1, "known": 60,
        "kernels": [{"kernel": "two", "caught": 6, "of": 7}]}' >"$e/robustness/hopper_mutants.json"
    echo '{"what": "wrong", "device": "emu", "gpu": "the emulator", "kernels": 9, "ordinary": 4, "gate": 8}' \
        >"$e/robustness/wrong_emu.json"
    echo '{"what": "wrong", "device": "cuda", "gpu": "NVIDIA X", "kernels": 10, "ordinary": 5, "gate": 10}' \
        >"$e/robustness/wrong_cuda.json"
    echo '{"what": "judge_mutants", "seed": 7, "killed": 96, "survived": 4, "equivalent": 3}' \
        >"$e/robustness/judge_mutants.json"
    echo '{"what": "race", "kernels": [{"kernel": "one", "passed": 7, "failed": 1, "skipped": 0}]}' \
        >"$e/robustness/race.json"
    echo '{"what": "race_controls", "racy": 31, "clean": 22, "missed": ["one"], "accused": [], "runs": 211}' \
        >"$e/robustness/race_controls.json"
    echo '{"what": "asan", "suites": "unit", "passed": 40, "failed": 0, "skipped": 2}' >"$e/robustness/asan.json"
    echo '{"what": "cheats", "device": "emu", "cheats": [{"name": "a", "verdict": "CAUGHT"},
        {"name": "b", "verdict": "NOT-RUN"}]}' >"$e/robustness/cheats_emu.json"
    echo '{"what": "cheats", "device": "cuda", "cheats": [{"name": "a", "verdict": "MISSED"},
        {"name": "b", "verdict": "CAUGHT"}]}' >"$e/robustness/cheats_cuda.json"
    echo '{"what": "conform", "gpu": "NVIDIA X", "passed": 6, "failed": 1}' >"$e/gpu/conform.json"
    echo '{"what": "sanitize", "gpu": "NVIDIA X",
        "kernels": [{"kernel": "one", "passed": 8, "failed": 1, "skipped": 0, "not_run": 3}],
        "tools": [{"tool": "memcheck", "passed": 8, "failed": 1}],
        "not_passed": [{"kernel": "one", "tool": "memcheck", "verdict": "failed", "why": "x"},
        {"kernel": "lib", "tool": "racecheck", "verdict": "skipped", "code": 9, "why": "in the library"},
        {"kernel": "lib", "tool": "memcheck", "verdict": "skipped", "code": 3, "why": "infeasible: too wide"}]}' \
        >"$e/gpu/sanitize.json"
    export FA_BENCH=$PWD/fa_bench
    run -0 "$work/tree/scripts/evidence/report.sh" --table robustness
    [[ $output == *"| 3 of 4 caught | 9 runs"* && $output == *"controls.sh\` | 2026-11-25, abc1234 |"* &&
        $output == *"| 5 of 6 caught | \`one\` 5 of 6, a sample of 68; "*" | not dated |"* &&
        $output == *"| 6 of 7 caught | \`two\` 6 of 7, a sample of 60;"* && $output == *"| 7 of 8 clean | 1 kernels"* &&
        $output == *"| 1 of 31 missed, 0 of 22 accused | 211 runs"* ]]
    [[ $output == *"40 tests passed, 0 failed"* && $output == *"NVIDIA X | 6 of 7 files"* &&
        $output == *"8 of 9 runs clean | memcheck 8 of 9; 3 not run"* ]]
    [[ $output == *"| \`one\` | memcheck | 1 | not explained |"* &&
        $output == *"| \`lib\` | racecheck | 1, not counted | in the library |"* && $output != *"too wide"* ]]
    mkdir -p "$work/tree/tests"
    printf 'one\tmemcheck\tthe reason\n' >"$work/tree/tests/sanitize_explained.tsv"
    "$work/tree/scripts/evidence/report.sh" --table robustness | grep -qF '| `one` | memcheck | 1 | the reason |'
    [[ $output == *"on the emulator: one fault each | 8 of 9 caught by the gate | 4 by an"* &&
        $output == *"on NVIDIA X: one fault each | 10 of 10 caught"*"run.sh --gpu\`"* &&
        $output == *"| 96 of 100 killed by unit tests | seed 7; besides 3 "* ]]
    # sets that have grown since are said to have
    mkdir -p "$work/tree/tests/wrong" "$work/tree/tests/cheats"
    printf 'a\tb\tc\td%s\n' '' '' '' $'\tgpu' >"$work/tree/tests/wrong/wrong.tsv"
    printf '    "%s any keeps checked"\n' a b >"$work/tree/tests/cheats/run.sh"
    run "$work/tree/scripts/evidence/report.sh" --table robustness
    [[ $output == *"| 4 by an ordinary run; today's set has 3; "* &&
        $output == *"| 5 by an ordinary run; today's set has 4; "* ]]
    # a cheat that one device missed is missed
    [[ $output == *"| 1 of 2 caught | \`tests/cheats/run.sh\` on cuda, emu | not dated |"* ]]
    [[ $output == *"| \`one\` | \`__syncwarp();\` in \`add\` (one.cu) | nobody reads after it |"* ]]
}
