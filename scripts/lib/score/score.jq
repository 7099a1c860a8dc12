# Two lines: whether the score may be kept (true or false); the score of a candidate, schema fa_bench.score/1, from the
# records of its stages.
# $emulator, $compile, $gpu: records in the order of $emulator_list and so on, lines "public|hidden OPTIONS" with a line
# for each run that was asked for. $problems: the list they come from. $incumbents: the incumbent's records of the
# compile stage, for its bound.
include "score/feedback";

def lines($text): $text | split("\n") | map(select(. != "")) |
    map(capture("^(?<visible>[a-z]+) +(?<options>.*)$"));

# A kernel can include any file, so a compiler's sentence can quote the list.
def words: [splits("\\s+") | select(. != "")] | join(" ");
[$problems | split("\n")[] | select(startswith("hidden ")) | words | sub("^\\S+ \\S+ "; "")] as $secrets |
def readable: split("\n") | map(words as $line | if any($secrets[]; . as $s | $line | contains($s))
    then "(a line that names a hidden problem)" else printable end) | join("\n");

def geometric_mean: if length == 0 or any(. == null) then null else map(log) | add / length | exp end;

# A run as the score tells it.
def run($stage; $line; $bound_of_incumbent):
    {stage: $stage, options: $line.options, visible: $line.visible,
     # A time that the GPU cannot have needed is no result.
     status: (if .status == "pass" and .timing.impossible then "error" else .status end),
     reason: (if .timing.impossible then "timed below the least that the GPU needs for this problem"
         elif .reason then .reason | readable else null end),
     # The incumbent comes after the candidate has been proven and timed: what fails then is not the candidate's.
     incumbent_failed: (.status != "pass" and .timing != null and .vs != null and .vs.ratio == null and
         (.vs.check.passed != true)),
     ptxas: (.ptxas | if . then {registers, spill_bytes: .spill_store_bytes, smem_bytes: .smem_total_bytes, stack_bytes,
         warnings} else null end),
     occupancy: .occupancy.fraction,
     bound: .bound,
     bound_ratio: (if $bound_of_incumbent and .bound.us then $bound_of_incumbent / .bound.us else null end),
     p50_us: .timing.p50_us, fraction_of_peak: .throughput.fraction_of_peak, noisy: .timing.noisy_reason,
     # Too few samples bound nothing.
     ratio: .vs.ratio, ratio_ci95: (.vs.ratio_ci95 // [] | if length == 2 and all(. != null) then . else null end),
     aa_noise: .vs.aa_noise, same_code: .vs.same_code,
     incumbent_p50_us: .vs.other_p50_us};

def runs($stage; $records; $text):
    lines($text) as $lines | [$records | to_entries[] | . as $at | $at.value |
        run($stage; $lines[$at.key]; $incumbents[$at.key].bound.us // null)] |
    map(if .incumbent_failed then .status = "not_run" | .reason = "the incumbent \($incumbent): \(.reason)" else . end);

# A stage: its first run that did not pass says how it ended.
def stage($name; $runs; $text; $why_not):
    (lines($text) | length) as $asked | ([$runs[] | select(.status != "pass")][0]) as $bad |
    {status: (if $bad then $bad.status elif $asked == 0 then "not_run" elif ($runs | length) < $asked then "error"
         else "pass" end),
     reason: (if $bad then if $bad.visible == "hidden" then "on a hidden problem" else $bad.reason end
         elif $asked == 0 then $why_not
         elif ($runs | length) < $asked then "fa_bench ended after \($runs | length) of \($asked) runs" else null end),
     runs: ($runs | length), asked: $asked};

# The interval of a geometric mean of independent ratios, and the largest noise of a candidate against itself.
def combined_interval: (map(.ratio) | geometric_mean) as $mean |
    if $mean == null or any(.ratio_ci95 == null) then null else
    length as $n | map(((.ratio_ci95[1] / .ratio_ci95[0]) | log) / 2 | . * .) | add | sqrt / $n |
    [$mean * (-. | exp), $mean * exp] end;

def results: {status, stage, options, reason, p50_us, incumbent_p50_us, ratio, ratio_ci95, aa_noise,
    bound_us: .bound.us, bound_ratio} | with_entries(select(.value != null));
# A group of problems: their means and, for each run that did not merely pass, what it says.
def group($runs): {
    passed: [$runs[] | select(.status == "pass")] | length, failed: [$runs[] | select(.status != "pass")] | length,
    ratio: [$runs[] | select(.stage == "gpu" and .status == "pass") | .ratio] | geometric_mean,
    results: [$runs[] | select(.status != "pass" or .stage != "emulator") | results]};

runs("emulator"; $emulator; $emulator_list) as $e | runs("compile"; $compile; $compile_list) as $c |
runs("gpu"; $gpu; $gpu_list) as $g | ($e + $c + $g) as $all |
($stages | split(",")) as $asked |
def why_not($name): if ($asked | index($name)) == null then "not asked for"
    elif $refused != "" then "the tile is refused"
    elif any($all[]; .status != "pass") then "an earlier stage failed"
    elif $name == "gpu" and $device == null then "no GPU" else "no problem for it" end;
{emulator: stage("emulator"; $e; $emulator_list; why_not("emulator")),
 compile: stage("compile"; $c; $compile_list; why_not("compile")),
 gpu: stage("gpu"; $g; $gpu_list; why_not("gpu"))} as $ended |
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
 stages: $ended,
 public: group([$all[] | select(.visible == "public")]),
 private: group([$all[] | select(.visible == "hidden")]),
 key: $key, cache: false, seconds: ($seconds * 1000 | round / 1000)} |
. + {text_feedback: feedback(.; $all; $refused)} |
# What the machine did not let happen may go well the next time.
((.status != "not_run" and .status != "error") or
    (.stages.gpu.status == "not_run" and .device == null and .correct == true)),
.
