# The score of a candidate, schema fa_bench.score/1, from the records of its stages.
# $emulator, $compile, $gpu: records in the order of $emulator_list and so on, lines "public|hidden OPTIONS" with a line
# for each run that was asked for. $problems: the list they come from. $incumbents: the incumbent's records of the
# compile stage, for its bound.
include "kinds";
include "record";

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

# What a person or a model reads of a score: at most 2,000 bytes, and nothing of a hidden problem but that it failed.
def feedback($score; $all; $refused):
    [$all[] | select(.visible == "public")] as $public |
    [$public[] | select(.stage == "compile" and .status == "pass")] as $compiled |
    [(if $refused != "" then "Infeasible: \($refused | printable)" else empty end),
     ([$all[] | select(.status != "pass")][0] | select(.) | failure(.)),
     ($score.needs // [] | select(length > 0) | "It needs \(join(", ")), which leaves out " +
         "\($score.public.skipped + $score.private.skipped) runs: they do not count."),
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

def lines($text): $text | split("\n") | map(select(. != "")) |
    map(capture("^(?<visible>[a-z]+) +(?<options>.*)$"));

# A kernel can include any file, so a compiler's sentence can quote the list.
def words: [splits("\\s+") | select(. != "")] | join(" ");
def readable: [$problems | split("\n")[] | select(startswith("hidden ")) | words | sub("^\\S+ \\S+ "; "")] as $secrets |
    split("\n") | map(words as $line | if any($secrets[]; . as $s | $line | contains($s))
    then "(a line that names a hidden problem)" else printable end) | join("\n");

def geometric_mean: if length == 0 or any(. == null) then null else map(log) | add / length | exp end;

# A problem that the candidate's needs leave out: neither right nor wrong.
def left_out: .status == "infeasible" and (.needs? // [] | length) > 0 and (.reason // "" |
    test(" needs (packed tensors|a K/V head for each|as many keys|tensors and rows on|query rows in|" +
        "keys in multiples)"));

# A run as the score tells it.
def run($stage; $line; $bound_of_incumbent):
    {stage: $stage, options: $line.options, visible: $line.visible,
     # A time that the GPU cannot have needed is no result.
     status: (if .status == "pass" and .timing.impossible then "error" elif left_out then "skipped"
         else .status end),
     reason: (if .timing.impossible then "timed below the least that the GPU needs for this problem"
         elif .reason then .reason | readable else null end),
     fault,
     # The incumbent comes after the candidate has been proven and timed: what fails then is not the candidate's.
     incumbent_failed: (.status != "pass" and .timing != null and .vs != null and .vs.ratio == null and
         (.vs.check.passed != true)),
     ptxas: (.ptxas | if . then {registers, spill_bytes: .spill_store_bytes, smem_bytes: .smem_total_bytes, stack_bytes,
         warnings} else null end), occupancy: .occupancy.fraction,
     bound: .bound,
     bound_ratio: (if $bound_of_incumbent and .bound.us then $bound_of_incumbent / .bound.us else null end),
     p50_us: .timing.p50_us, fraction_of_peak: .throughput.fraction_of_peak, noisy: .timing.noisy_reason,
     # Too few samples bound nothing.
     ratio: .vs.ratio, ratio_ci95: (.vs.ratio_ci95 // [] | if length == 2 and all(. != null) then . else null end),
     aa_noise: .vs.aa_noise, same_code: .vs.same_code, incumbent_p50_us: .vs.other_p50_us};

def runs($stage; $records; $text):
    lines($text) as $lines | [$records | to_entries[] | . as $at | $at.value |
        run($stage; $lines[$at.key]; $incumbents[$at.key].bound.us // null)] |
    map(if .incumbent_failed then .status = "not_run" | .reason = "the incumbent \($incumbent): \(.reason)" else . end);

# A stage: its first run that did not pass says how it ended. Of $skipped problems it says nothing.
def stage($name; $runs; $text; $skipped; $why_not):
    ((lines($text) | length) - $skipped) as $asked | ([$runs[] | select(.status != "pass")][0]) as $bad |
    {status: (if $bad then $bad.status elif $asked == 0 then "not_run" elif ($runs | length) < $asked then "error"
         else "pass" end),
     reason: (if $bad then if $bad.visible == "hidden" then "on a hidden problem" else $bad.reason end
         elif $asked == 0 then if $skipped > 0 then "the candidate needs other problems than these" else $why_not end
         elif ($runs | length) < $asked then "fa_bench ended after \($runs | length) of \($asked) runs" else null end),
     runs: ($runs | length), asked: $asked};

# The interval of a geometric mean of independent ratios, and the largest noise of a candidate against itself.
def combined_interval: (map(.ratio) | geometric_mean) as $mean |
    if $mean == null or any(.ratio_ci95 == null) then null else
    length as $n | map(((.ratio_ci95[1] / .ratio_ci95[0]) | log) / 2 | . * .) | add | sqrt / $n |
    [$mean * (-. | exp), $mean * exp] end;

def results: {status, stage, options, reason, fault, p50_us, incumbent_p50_us, ratio, ratio_ci95, aa_noise,
    bound_us: .bound.us, bound_ratio} | with_entries(select(.value != null));
# A group of problems: their means and, for each run that did not merely pass, what it says.
def group($runs): {
    passed: [$runs[] | select(.status == "pass")] | length,
    failed: [$runs[] | select(.status != "pass" and .status != "skipped")] | length,
    skipped: [$runs[] | select(.status == "skipped")] | length,
    ratio: [$runs[] | select(.stage == "gpu" and .status == "pass") | .ratio] | geometric_mean,
    results: [$runs[] | select(.status != "pass" or .stage != "emulator") | results]};

# Of the records of a stage (with jq -s): "settled" when all $lines are there and nothing ends it, else "ended", and
# "broken" when they are none.
def state: if length > $lines or any(.[]; is_record | not) then "broken"
    elif length == $lines and all(.[]; .status == "pass" or left_out) then "settled" else "ended" end;

# Two lines: whether the score may be kept (true or false); the score.
def score:
    def tried: map(select(.status != "skipped"));
    def skipped: map(select(.status == "skipped"));
    runs("emulator"; $emulator; $emulator_list) as $e_all | runs("compile"; $compile; $compile_list) as $c_all |
    runs("gpu"; $gpu; $gpu_list) as $g_all | ($e_all | tried) as $e | ($c_all | tried) as $c | ($g_all | tried) as $g |
    ($e + $c + $g) as $all | ($e_all + $c_all + $g_all | skipped) as $skipped |
    ([$emulator[], $compile[], $gpu[]] | map(select(.serves? != null))[0]) as $says |
    ($stages | split(",")) as $asked |
    def why_not($name): if ($asked | index($name)) == null then "not asked for"
        elif $refused != "" then "the tile is refused"
        elif any($all[]; .status != "pass") then "an earlier stage failed"
        elif $name == "gpu" and $device == null then "no GPU" else "no problem for it" end;
    {emulator: stage("emulator"; $e; $emulator_list; $e_all | skipped | length; why_not("emulator")),
     compile: stage("compile"; $c; $compile_list; $c_all | skipped | length; why_not("compile")),
     gpu: stage("gpu"; $g; $gpu_list; $g_all | skipped | length; why_not("gpu"))} as $ended |
    ([$ended[] | .status] | map(select(. != "pass" and . != "not_run"))[0]) as $failure |
    (if $refused != "" then "infeasible" else $failure end) as $broken |
    (if $by == "speed" and $ended.gpu.status == "pass" then [$g[].ratio] | geometric_mean
     elif $by == "bound" and $ended.compile.status == "pass" then [$c[].bound_ratio] | geometric_mean
     elif $by == "emulator" and $ended.emulator.status == "pass" then 1 else null end) as $value |
    ([$g[].aa_noise // 0] | max // 0) as $noise |
    (if $ended.gpu.status == "pass" then $g | combined_interval else null end) as $interval |
    ([$g[].ratio] | geometric_mean) as $mean |
    {schema: "fa_bench.score/1",
     status: (if $broken then $broken elif $value == null then "not_run" else "pass" end),
     correct: (if $broken then false elif $ended.emulator.status == "pass" or $ended.gpu.status == "pass" then true
         else null end),
     combined_score: (if $broken then 0 else $value end), score_by: $by,
     ratio_ci95: $interval, aa_noise: (if $interval then $noise else null end),
     improved: (if $interval then $interval[0] > 1 and $mean - 1 > ([0.03, 2 * $noise] | max) else null end),
     candidate: $candidate, knobs: $knobs, incumbent: $incumbent, arch: $arch, device: $device,
     serves: ($says.serves // null), needs: ($says.needs // null), stages: $ended,
     public: group([$all[], $skipped[] | select(.visible == "public")]),
     private: group([$all[], $skipped[] | select(.visible == "hidden")]),
     key: $key, cache: false, seconds: ($seconds * 1000 | round / 1000)} |
    . + {text_feedback: feedback(.; $all; $refused)} |
    # What the machine did not let happen may go well the next time.
    ((.status != "not_run" and .status != "error") or
        (.stages.gpu.status == "not_run" and .device == null and .correct == true)),
    .;
