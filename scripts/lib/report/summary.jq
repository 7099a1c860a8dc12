# versus.json as the README's table, of the kernel that has most of its rows: head dims and masks of two shapes and
# more. $folder: where it lies, named for the GPU.
include "report/numbers";
def peer: .vs_version // .vs;
def shapes: map(.problem) | unique | length;
def at($pace): map(select(.pace == $pace)) | map(.ratio) | mean | hundredths;
map(select(.ratio)) | group_by(.kernel) | max_by(length) // [] |
(group_by(peer) | sort_by(-length) | map(.[0] | peer)) as $peers |
"\([.[0].kernel | values] | names) on an \($folder | ascii_upcase), times as fast in pairs (`--vs`), " +
    "geometric means: above 1 ours is faster.",
"Rested: each launch after a pause, the L2 cold. -: not measured.", "",
(["head dim", "mask", "shapes"] + ($peers | map(sub(" [0-9a-f]{8}$"; ""), "rested")) | row),
"|\("---|" * (3 + 2 * ($peers | length)))",
(group_by([.problem.dim, .problem.causal])[] | select(shapes > 1) |
    [.[0].problem.dim, (.[0].problem | mask), shapes] +
    [$peers[] as $peer | map(select(peer == $peer)) | at("sustained", "rested")] | map(tostring) | row)
