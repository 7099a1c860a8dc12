# versus.json as the README's table, of the kernel that has most of its rows. $folder: where it lies, named for the GPU.
include "report/numbers";
def peer: .vs_version // .vs;
def at($pace): map(select(.pace == $pace));
def cell: map(.ratio) | mean | hundredths;
map(select(.ratio)) | group_by(.kernel) | max_by(length) // [] |
(group_by(peer) | sort_by(-length) | map(.[0] | peer)) as $peers |
"\([.[0].kernel | values] | names) on an \($folder | ascii_upcase), times as fast in pairs (`--vs`): geometric means " +
"over \(map(.problem) | unique | length) shapes. Above 1 ours is faster.",
"rested: each launch after a pause, the L2 cold. -: not measured there.", "",
(["head dim", "mask", "shapes"] + ($peers | map("over \(.)", "rested")) | row), "|\("---|" * (3 + 2 * ($peers | length)))",
(group_by([.problem.dim, .problem.causal])[] |
    [.[0].problem.dim, (.[0].problem | mask), (map(.problem) | unique | length)] +
    [$peers[] as $peer | map(select(peer == $peer)) | (at("sustained") | cell), (at("rested") | cell)] |
    map(tostring) | row)
