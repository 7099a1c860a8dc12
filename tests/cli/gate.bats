#!/usr/bin/env bats
# The gate: what passes, what fails, what is NOT-RUN, and what it leaves for a CI server.
load stub_bench

gate() { scripts/ci_gate.sh --out "$work/gate" "$@"; }

@test "bad arguments are refused" {
    refused 2 "--jobs takes a whole number from 1" gate --jobs 0
    refused 2 "--draws takes a whole number from 0" gate --draws -1
    refused 2 "no kernel 'nosuch'" gate --kernel light,nosuch
    refused 2 "one of --sanitize, --race, --conform" gate --race --sanitize
    refused 2 "--conform is about the emulator alone" gate --conform --kernel light
    FA_BENCH=$work/none refused 4 "run make" gate
}

@test "a plain reference that the CPU disproves fails its case; headers that are missing are NOT-RUN, with the reason" {
    python3 - <<'END'
import sys, types
sys.path[0] = "scripts/lib/gate"
import cases, subjects
asked = types.SimpleNamespace(is_library=lambda kernel: False, is_own=lambda kernel: False, gpu=False,
                              device_name="emu", options=types.SimpleNamespace(sanitize=False))
case = subjects.Case("light", "", "--window 3,0")
for missing, verdict in ((None, "passed"), ("cublas: does not serve --window; plain: no compiler", "passed"),
                         ("plain: its own result is wrong here, so no reference: batch 0", "failed")):
    made = cases.judged(case, {"status": "pass", "check": {"missing": missing}}, 0, "", asked, "")
    assert made["verdict"] == verdict, made
    assert (verdict == "failed") == ("batch 0" in made["text"]), made
asked.rows = {"light": {"missing": "light needs the headers"}}
made = cases.judged(case, {"status": "not_run", "reason": "light needs the headers"}, 4, "", asked, "")
assert made["verdict"] == "not_run" and made["text"] == "NOT-RUN: light needs the headers", made
said = "fa_bench: error: ended with 6\nfa_bench: error: no process can be started (ulimit -u)\n"
made = cases.judged(case, {"status": "error", "reason": "ended with 6"}, 6, said, asked, "")
assert made["text"].count("ended with 6") == 1 and "ulimit" in made["text"], made
END
}

@test "a wrong kernel fails the gate, by name, with the reason, in XML that parses" {
    make_stub no_gpu
    echo 'two 16 4' >"$STUB/wrong"
    few=$(gate --kernel one --quick --draws 0 --dry-run | wc -l)
    run -1 gate --quick --draws 0 --shrink 3000
    [[ $output == *"FAIL two "*"(exit 1)"* ]]
    smallest="--kernel two --device emu --batch 1 --heads 1 --kv-heads 1 --seq 1 --seq-kv 1 "
    [[ $output == *"smallest that fails: "*"$smallest"* ]]
    [[ $output == *"one: $few passed, 0 failed"*"two: 2 passed, $((few - 2)) failed"* ]] # with m 32, and with warps 8
    run gate --quick --draws 0 --jobs 1 --kernel two --fail-fast --shrink 0 --out "$work/fast"
    [[ $output == *"two: 0 passed, 1 failed"* ]]
    run gate --race --quick --draws 0 --kernel two --shrink 20 --out "$work/race"
    [[ $output == *"smallest that fails: "*"--kernel two --device emu --race --schedule random --batch 1 --heads 1 "* ]]
    python3 - "$work/gate/junit.xml" "$few" <<'END'
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
few = int(sys.argv[2])
assert suite.get("tests") == str(2 * few) and suite.get("failures") == str(few - 2), suite.attrib
assert sum(case.find("failure") is not None for case in suite) == few - 2
assert all(case.get("classname") == "two" for case in suite if case.find("failure") is not None)
times = [float(case.get("time")) for case in suite] # the stub's 0.75 s each
assert times == [0.75] * len(times) and float(suite.get("time")) == sum(times), times
END
}

@test "a tile that is infeasible gives way to another with the same value; a value without one is skipped and named" {
    make_stub no_gpu
    tile_cases() { jq -c 'select(.knob == "'"$1"'") | [.verdict, (.args | split(" --batch")[0])]' \
        "$work/gate/cases.jsonl" | sort | uniq -c | xargs; }
    BAD_ARGS='--m 32 --warps 4' BAD_STATUS=infeasible run -0 gate --kernel one --draws 0 --jobs 1
    [[ $output == *" passed, 0 failed, 0 skipped"*"of its tile space: 2 values, 1 pairs"* && $output != *infeasible* ]]
    [ "$(tile_cases m=32)" = "4 [passed,--m 32 --warps 8]" ]
    BAD_ARGS='--warps 8' BAD_STATUS=infeasible run -0 gate --kernel one --draws 0 --jobs 1
    [[ $output == *" passed, 0 failed, 6 skipped"*"2 values, 1 pairs; infeasible: m=32 warps=8, warps=8"* ]]
    [ "$(tile_cases warps=8)" = "4 [skipped,--m 32 --warps 8]" ]
    jq -e '.kernels[0].knobs == {"values": 2, "pairs": 1, "infeasible": ["m=32 warps=8", "warps=8"]}' \
        "$work/gate/summary.json"
    BAD_ARGS='--m 32 --warps 4' BAD_STATUS=wrong run -1 gate --kernel one --draws 0 --jobs 1 --shrink 0
    [[ $output == *" passed, 4 failed, 0 skipped"* ]]
}

@test "speed is a ratio to the committed baseline: 3 % below it fails" {
    make_stub
    # The baseline of the stub's GPU, in a copy of the tree: 90 us over 50 us is 1.8, which is 0.97 of 1.855.
    mkdir -p "$work/tree/evidence/stub" "$work/tree/scripts"
    cp -r scripts "$work/tree/"
    for ratio in 1.8 1.855 1.856; do
        echo '{"kernel": "one", "vs": "two:m=16,warps=4", "args": "--seq 512", "ratio": '$ratio'}'
    done | jq -s . >"$work/tree/evidence/stub/gate_baseline.json"
    run -1 "$work/tree/scripts/ci_gate.sh" --out "$work/gate" --quick --draws 0 --kernel one
    jq -es '[.[] | select(.tool == "speed") | .verdict] == ["passed", "passed", "failed"]' "$work/gate/cases.jsonl"
    [[ $output == *"FAIL one speed"*"baseline 1.856"* && $output != *"baseline 1.8 "* ]]
}

@test "no compute-sanitizer or no GPU: NOT-RUN, exit 4" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    run -4 gate --sanitize
    [[ $output == *"NOT-RUN"* ]]
}

# A compute-sanitizer that finds something in `two`, and in a library; each start leaves a line in $STUB/sanitized.
make_sanitizer() {
    make_stub gpu source.lib
    echo 'lib 16 4 90' >>"$STUB/times"
    executable "$work/bin/compute-sanitizer" <<'END'
tool=$2
while [[ $1 != */fa_stub ]]; do shift; done
echo "$tool $*" >>"$STUB/sanitized"
case "$tool $*" in
    racecheck*"--kernel two "*)
        "$@"
        echo "Error: Race reported between Read access at add_up(float)+0x10 in two.cu:12"
        echo "= RACECHECK SUMMARY: 1 hazards displayed (1 errors)"
        ;;
    initcheck*"--kernel lib "*)
        "$@"
        echo "Uninitialized __global__ memory read at vendor_gemm+0x20"
        echo "= ERROR SUMMARY: 3 errors"
        exit 9
        ;;
    memcheck*"--kernel lib "*)
        "$@"
        echo "Invalid __global__ read at our_part+0x20 in lib_part.cu:7"
        echo "= ERROR SUMMARY: 1 errors"
        exit 9
        ;;
    synccheck*"--kernel lib "*) "$@" ;; # and not a word
    *)
        if "$@"; then
            echo "= ERROR SUMMARY: 0 errors"
        else
            echo "Target application returned an error"
            echo "= ERROR SUMMARY: 1 error"
        fi
        ;;
esac
END
    export PATH=$work/bin:$PATH
}

@test "conformance: the words of the emulator beside the GPU's, and a difference fails" {
    make_stub gpu
    # Words of its own for one file on the GPU.
    executable "$work/emu_case" <<'END'
[[ $* == *" --case "* ]] || basename "$1" >"${@: -1}"
[[ $1 != */conform/matrix.cu || $3 != cuda ]] || echo other >>"${@: -1}"
echo pass
END
    EMU_CASE=$work/emu_case run -1 gate --conform
    [[ $output == *"FAIL emulator conform matrix"* && $output != *"conform shuffles"* ]]
    jq -e '.what == "conform" and .failed == 1 and .passed > 4 and (.cases[] | select(.name == "matrix") |
        .words_sha256.emu != .words_sha256.cuda)' "$work/gate/conform.json"
}

@test "a library is gated over the matrix alone, and on a GPU" {
    make_stub
    touch "$work/my lib.so"
    run -0 gate --library "$work/my lib.so" --draws 0 --dry-run
    [ "$(grep -cF "library:$work/my lib.so||" <<<"$output")" -ge 50 ]
    refused 2 "--library takes a file that can be read" gate --library "$work/none.so"
    refused 2 "two gates" gate --library "$work/my lib.so" --kernel one
    refused 2 "goes over the matrix alone" gate --library "$work/my lib.so" --race
    touch "$STUB/no_gpu"
    refused 4 "NOT-RUN: a library needs a GPU" gate --library "$work/my lib.so"
}

# bats file_tags=slow
@test "the emulator's matrix of a real kernel passes, the rest is NOT-RUN, and --require-gpu makes that a failure" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    few=$(gate --kernel scalar --quick --draws 0 --dry-run | wc -l)
    [ "$few" -ge 4 ]
    run -0 gate --kernel scalar --quick --draws 0
    [[ $output == *"scalar: $few passed, 0 failed, 0 skipped"* ]]
    [[ $output == *"NOT-RUN on a GPU"*"NOT-RUN: speed"* ]]
    jq -e '.device == "emu" and (.kernels | length == 1) and .kernels[0].passed == '"$few" "$work/gate/summary.json"
    for record in "$work"/gate/records/*.json; do record_holds "$record" '.status == "pass"' \
        '.check.seeds <= 3 or .problem.strides == "odd"' '.check.references | map(.name) == ["cpu", "plain"]'; done
    make_stub no_gpu
    run -1 gate --kernel one --quick --draws 0 --require-gpu
    [[ $output == *"FAIL no GPU, and --require-gpu"* ]]
}

@test "compute-sanitizer: a finding in our kernel fails, one in a library is skipped with why, silence is no pass" {
    make_sanitizer
    run -1 gate --sanitize --quick --draws 0
    [[ $output == *"FAIL two racecheck "*"(exit 9)"* && $output == *"FAIL lib memcheck "* &&
        $output == *"FAIL lib synccheck "* ]]
    [[ $output != *"FAIL one"* && $output != *"FAIL lib initcheck"* ]]
    jq -e '.what == "sanitize" and .gpu == "NVIDIA Stub" and (.tools | length == 4) and
        any(.not_passed[]; .kernel == "lib" and .verdict == "skipped" and (.why | test("vendor_gemm")))
        and (.kernels[] | select(.kernel == "one") | .failed == 0 and .passed > 4 and .git == ["stub"] and
        (.source_sha256 | length) == 1)' "$work/gate/summary.json"
    # One process for all cases of a kernel and a tool, another for each only where there is something to tell apart.
    [ "$(grep -c 'racecheck .*--kernel one ' "$STUB/sanitized")" -eq 1 ]
    [ "$(grep -c 'racecheck .*--kernel two ' "$STUB/sanitized")" -eq 4 ]
}

@test "compute-sanitizer: what cannot run under it is skipped, and the others of its process pass" {
    make_sanitizer
    export BAD_ARGS='--dim 128' BAD_STATUS=infeasible
    run -0 gate --sanitize --kernel one --draws 0
    jq -es 'map(select(.args | test("--dim 128"))) | length > 4 and all(.[]; .verdict == "skipped" and .code == 3 and
        .text == "infeasible: made up")' "$work/gate/cases.jsonl"
    jq -es 'map(select(.args | test("--dim 128") | not)) | length > 4 and all(.[]; .verdict == "passed")' \
        "$work/gate/cases.jsonl"
    [ "$(wc -l <"$STUB/sanitized")" -eq 8 ] # two processes for each tool
}

@test "--resume takes over what did not fail with the same machine code, and runs the rest" {
    make_sanitizer
    refused 2 "--resume takes cases.jsonl" gate --sanitize --resume "$work/none"
    run gate --sanitize --quick
    # what the device runs, which some kernels need by name
    grep -q -- '^--kernel one --compile-only --arch sm_90a' "$STUB/commands"
    cp "$work/gate/cases.jsonl" "$work/earlier.jsonl"
    : >"$STUB/sanitized"
    run -1 gate --sanitize --quick --resume "$work/earlier.jsonl"
    run ! grep -e '--kernel one ' -e 'initcheck .*--kernel lib ' "$STUB/sanitized"
    grep -q 'racecheck .*--kernel two ' "$STUB/sanitized"
    diff <(jq -r '"\(.kernel) \(.tool) \(.args) \(.verdict)"' "$work/earlier.jsonl") \
        <(jq -r '"\(.kernel) \(.tool) \(.args) \(.verdict)"' "$work/gate/cases.jsonl")
    # Another code of one kernel: that one again, and in place of the file it goes on from.
    sed -i 's/two/zwei/' "$work/bin/compute-sanitizer"
    printf '%064d' 7 >"$STUB/source.one"
    : >"$STUB/sanitized"
    run gate --sanitize --quick --resume "$work/gate/cases.jsonl"
    grep -q 'memcheck .*--kernel one ' "$STUB/sanitized"
    run ! grep 'memcheck .*--kernel two ' "$STUB/sanitized"
    jq -es 'all(.[] | select(.kernel == "one"); .code_sha256 | endswith("7")) and all(.[] | select(.kernel == "two");
        .verdict == "passed")' "$work/gate/cases.jsonl"
    # Another GPU: everything.
    echo "NVIDIA Other" >"$STUB/device"
    : >"$STUB/sanitized"
    run gate --sanitize --quick --resume "$work/gate/cases.jsonl"
    [[ $output == *"0 of "*" cases are those of "* ]]
    [ "$(grep -c 'memcheck ' "$STUB/sanitized")" -ge 3 ]
}

@test "--require-gpu wants the emulator beside the GPU, too" {
    make_stub gpu
    mkdir -p "$work/tree/scripts" "$work/tree/tests"
    cp -r scripts "$work/tree/" # a tree where nobody built emu_case
    run -1 "$work/tree/scripts/ci_gate.sh" --out "$work/gate" --quick --require-gpu
    [[ $output == *"NOT-RUN: conformance (no build/tests/emu/emu_case"*"FAIL no build/tests/emu/emu_case"* ]]
    run "$work/tree/scripts/ci_gate.sh" --out "$work/gate" --quick # without, it is said and no more
    [[ $output == *"NOT-RUN: conformance"* && $output != *"FAIL no "* ]]
}

@test "--dry-run lists kernels x problems and runs nothing" {
    run -0 gate --dry-run
    for kernel in $(./fa_bench --list-kernels --json - |
        jq -r '.[] | select(.emulated and .variant_of == null) | .name'); do
        [ "$(grep -c "^$kernel|" <<<"$output")" -ge 8 ]
    done
    [[ $output == *--causal* && $output == *"--strides far"* ]]
    [ ! -e "$work/gate" ]
    # On a GPU: every sequence length that tiles meet, and of a library what it does in pieces.
    make_stub source.lib
    run gate --dry-run
    for seq in 1 15 16 17 113 129 799 1023 1024; do grep -q "^one|.*--seq $seq --causal" <<<"$output"; done
    grep -q '^lib|.*--seq 16384 --causal' <<<"$output"
    [ -z "$(grep '^one|.*--seq 16384' <<<"$output")" ]
}

@test "a gate that is cut off leaves the cases that were done, and says it is unfinished" {
    make_stub no_gpu
    echo 36 >"$STUB/hold" # a summary is made at the twentieth; up to 15 are held that counted one another
    setsid scripts/ci_gate.sh --out "$work/gate" --jobs 16 >/dev/null 2>&1 3>&- &
    victim=$!
    eventually test -s "$work/gate/summary.json"
    kill -9 -- "-$victim"
    wait "$victim" || true
    jq -e '(.note | test("^unfinished: [1-9][0-9]* of [0-9]+ cases$")) and (.kernels | map(.passed) | add) > 0 and
        all(.kernels[]; .failed == 0)' "$work/gate/summary.json"
    jq -es 'length > 0 and all(.[]; .verdict == "passed")' "$work/gate/cases.jsonl"
}

@test "a case that the time limit ends is NOT-RUN, as those that it leaves" {
    make_stub no_gpu
    echo 1 >"$STUB/hold"
    run -4 gate --kernel one --quick --draws 0 --jobs 1 --seconds 1
    [[ $output == *"one: 1 passed, 0 failed, 0 skipped, "*" NOT-RUN: the time limit came first"* ]]
}

@test "a library goes over the whole matrix; what it refuses is skipped" {
    make_stub
    touch "$work/my lib.so"
    BAD_ARGS=--misalign BAD_STATUS=infeasible run -0 gate --library "$work/my lib.so" --jobs 1
    refused_cases=$(jq -s 'map(select(.args | test("--misalign"))) | length' "$work/gate/cases.jsonl")
    [ "$refused_cases" -gt 2 ]
    [[ $output == *"library:$work/my lib.so: "*" passed, 0 failed, $refused_cases skipped"* ]]
    [ "$(grep -cF -- "--library $work/my lib.so --device cuda" "$STUB/commands")" -ge 50 ]
}
