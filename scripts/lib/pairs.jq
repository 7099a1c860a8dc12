# Records of pairs, as scripts/evidence/pairs.sh makes them: rows, and what they come to.
include "record";

# The name of a row's problem: B,H[/Hkv],Sq[:Skv],D, the mask, the element type where it is not FP16.
def name: .problem | "\(.batch),\(.heads)\(if (.kv_heads // .heads) == .heads then "" else "/\(.kv_heads)" end)," +
    "\(.seq_q)\(if (.seq_kv // .seq_q) == .seq_q then "" else ":\(.seq_kv)" end),\(.dim)" +
    "\(if .causal then " causal" else "" end)\(typed)";

# The rows with a ratio of the kernel that has most of them.
def main_kernel: map(select(.ratio)) | group_by(.kernel) | max_by(length) // [];

# Records of pairs as rows; of two records of one command the later one. A torn line is left out.
def rows:
    def pace: .provenance.command // "" | if test("--rest-ms [1-9]") then "rested" else "sustained" end;
    def peer: .vs.kernel // (.provenance.command // "" | capture("--vs (?<name>[^ ]+)").name |
        sub("^library:(.*/)?"; "") | sub("[.]so$"; ""));
    reduce (inputs | fromjson? | select(.problem)) as $record ({};
        .[$record.provenance.command // ""] = $record) | map({
        kernel, variant, arch: .ptxas.arch, config, pace: pace,
        problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal, dtype}),
        vs: peer, vs_version: .vs.compiler, status, reason,
        p50_us: .vs.p50_us, vs_p50_us: .vs.other_p50_us, ratio: .vs.ratio, ci95: .vs.ratio_ci95, blocks: .vs.blocks,
        solo_us: .timing.p50_us, tflops: .throughput.tflops, sm_clock_mhz: .timing.sm_clock_mhz.p50,
        percent_of_peak: .timing.percent_of_peak_at_clock, gpu: .device.name, driver: .provenance.driver,
        git: .provenance.git, code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256});

# The rows of pairs for people: per kernel, pace and peer the mean and the least, pairs below 1, and what has no ratio.
def text:
    group_by([.kernel, .pace, .vs])[] | map(select(.ratio)) as $timed | map(select(.ratio == null)) as $rest |
    ($timed | map(.ratio)) as $ratios |
    "\(.[0].kernel) over \([.[].vs_version | values][0] // .[0].vs), \(.[0].pace): " + (if $ratios == [] then "no pair"
        else "geometric mean \($ratios | mean | thousandths), least \($ratios | min | thousandths), " +
            "\($ratios | map(select(. < 1)) | length) below 1, \($ratios | length) pairs" end),
    ($timed | map(select(.ratio < 1)) | sort_by(.ratio)[] |
        "  \(.ratio | thousandths) (\(.ci95 | map(thousandths | tostring) | join(" to "))) \(name)"),
    ($rest | group_by([.status, .reason])[] | "  \(.[0].status), \(length) pairs: \(.[0].reason // "no reason")" +
        if .[0].status | IN("not_run", "infeasible") then "" else " (\(map(name) | join("; ")))" end);

# The runs, a line each, that none of the commands of records, $commands, ends with.
def left:
    ($commands | split("\n")) as $done | inputs | . as $run | select(any($done[]; endswith(" " + $run)) | not);

# False when a record is of a run that failed: a peer that cannot serve a problem has not failed.
def failed:
    all(.status | IN("pass", "not_run", "infeasible"));
