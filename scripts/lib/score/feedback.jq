# What a person or a model reads of a score: at most 2,000 bytes, and nothing of a hidden problem but that it failed.

def digits($n): . * pow(10; $n) | round / pow(10; $n);
def shortened($n): if utf8bytelength <= $n then .
    else .[:$n - 60] | until(utf8bytelength <= $n - 4; .[:-20]) + " ..." end;

# Without what a terminal or a reader would obey: control characters, marks that turn text round.
def printable: explode | map(select(. == 9 or . == 10 or (. >= 32 and (. < 127 or . > 159) and
    (. < 8206 or . > 8207) and (. < 8234 or . > 8238) and (. < 8294 or . > 8297)))) | implode;

def name_of_stage: {emulator: "on the emulator", compile: "at the compiler", gpu: "on the GPU"}[.];
def failed_words: {wrong: "Wrong", infeasible: "Infeasible", compile_error: "Does not compile", timeout: "Timed out",
    error: "Broken", not_run: "Not run"}[.];

def outcome: "\(.status | failed_words) \(.stage | name_of_stage)";

def failure($run):
    if $run.visible == "hidden" then
        "\($run | outcome) on a hidden problem, of which nothing more is said: " +
        "other shapes, seeds or inputs than the public ones."
    else "\($run | outcome) with \($run.options):\n\($run.reason // "no reason")" end;

def resources: .ptxas as $p | select($p) |
    "\($p.registers) registers a thread, \($p.smem_bytes) bytes of shared memory, occupancy " +
    "\(if .occupancy then "\(.occupancy * 100 | digits(0)) %" else "unknown" end)" +
    (if ($p.spill_bytes // 0) > 0 then "; SPILLS \($p.spill_bytes) bytes to local memory" else ", no spills" end) +
    (if ($p.stack_bytes // 0) > 0 then 
        "; a stack of \($p.stack_bytes) bytes (an array with a variable index?)" else "" end) +
    ($p.warnings // [] | map("; the compiler warns: \(.)") | join(""));

def bound_words: .bound as $b | select($b) |
    if $b.unknown then "Bound unknown: \($b.unknown)"
    elif $b.us then
        "cannot be faster than \($b.us | digits(2)) us: \($b.binds) binds, then \($b.second)" else empty end;

def speed($compiled): "\(.options): \(.p50_us | digits(2)) us, ratio \(.ratio | digits(4)) " +
    "[\(.ratio_ci95 | if . then map(digits(4) | tostring) | join(", ")
        else "too few samples for an interval: more --max-time" end)] " +
    "to the incumbent's \(.incumbent_p50_us | digits(2)) us" +
    (if .aa_noise then ", noise \(.aa_noise * 100 | digits(2)) %" else "" end) +
    (if .fraction_of_peak then ", \(.fraction_of_peak * 100 | digits(1)) % of peak" else "" end) +
    (if $compiled.bound.us then
        ", \(.p50_us / $compiled.bound.us | digits(2)) times its bound (\($compiled.bound.binds))" else "" end) +
    (if .same_code then "; THE SAME MACHINE CODE as the incumbent" else "" end) +
    (if .noisy then "; noisy: \(.noisy)" else "" end);

def feedback($score; $all; $refused):
    [$all[] | select(.visible == "public")] as $public |
    [$public[] | select(.stage == "compile" and .status == "pass")] as $compiled |
    [(if $refused != "" then "Infeasible: \($refused | printable)" else empty end),
     ([$all[] | select(.status != "pass")][0] | select(.) | failure(.)),
     (if $score.correct == false and ([$all[] | select(.status == "pass" and .visible == "public")] | length) > 0 then
         "Before that it passed \([$public[] | select(.status == "pass")] | length) public runs." else empty end),
     (if $score.stages.emulator.status == "pass" then
         "Right on the emulator: \($score.stages.emulator.runs) runs under four thread schedules and the race detector."
      else empty end),
     (if all($all[]; .status == "pass") then
         $score.stages[] | select(.status == "error" and .runs < .asked) | .reason else empty end),
     ([$compiled[] | resources] | unique | map("\($score.arch): \(.)") | .[]),
     ($compiled[] | . as $run | bound_words | "\($run.options): \(.)"),
     ([$public[] | select(.stage == "gpu" and .status == "pass")] | to_entries[] |
         .key as $i | .value | speed($compiled[$i])),
     (if $score.improved == true then "Faster than the incumbent, beyond the noise."
      elif $score.improved == false then "Not an improvement: inside the noise, below 3 %, or slower." else empty end),
     (if $score.status == "not_run" then
        "No score by \($score.score_by)" +
        ($score.stages[{speed: "gpu", bound: "compile", emulator: "emulator"}[$score.score_by]] |
            if .runs == 0 then ": \(.reason)" else "" end)
      else empty end)] |
    map(shortened(1200)) | join("\n") | shortened(2000);
