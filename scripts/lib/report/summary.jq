# versus.json as the README's table, of the kernel that has most of its rows: head dims and masks of two shapes and
# more. $folder: where it lies, named for the GPU. $fa4, $serving: peers_fa4.json and peers_serving.json beside it, or
# nothing.
include "report/numbers";
def peer: .vs_version // .vs;
def shapes: map(.problem) | unique | length;
def fa4: if $fa4 == [] then [] else
    .[0].problem as {$dim, $causal} | [[$fa4[0][] | select(.dim == $dim and .causal == $causal).paired.fa4.ratio |
        values] | mean | hundredths] end;
def at($pace): map(select(.pace == $pace)) | map(.ratio) | mean | hundredths;
map(select(.ratio)) | group_by(.kernel) | max_by(length) // [] |
(group_by(peer) | sort_by(-length) | map(.[0] | peer)) as $peers |
"\([.[0].kernel | values] | names) on an \($folder | ascii_upcase), times as fast in pairs (`--vs`), " +
    "geometric means: above 1 ours is faster.",
"Rested: each launch after a pause, the L2 cold.", "",
(["head dim", "mask", "shapes"] + ($peers | map(sub(" [0-9a-f]{8}$"; ""), "rested")) +
    if $fa4 == [] then [] else ["FlashAttention 4"] end | row),
"|" + "---|" * (3 + 2 * ($peers | length) + ($fa4 | length)),
(group_by([.problem.dim, .problem.causal])[] | select(shapes > 1) |
    [.[0].problem.dim, (.[0].problem | mask), shapes] +
    [$peers[] as $peer | map(select(peer == $peer)) | at("sustained", "rested")] + fa4 | map(tostring) | row),
($serving[0] // [] | map(select(.paired_ratio)) | if . == [] then empty else
    "", "Serving, over the fastest of FlashAttention 3 and 4 and FlashInfer: " +
    (group_by(.kind) | map("\(.[0].kind) \(map(.paired_ratio) | mean | hundredths)") | join(", ")) +
    " (least \(map(.paired_ratio) | min | hundredths))." end)
