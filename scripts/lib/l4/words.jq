# What the page of the L4 says around its tables.
def head($p; $unfitted):
    "# L4: what the machine code says without one", "",
    "Written by `scripts/evidence/l4.sh`; no GPU needed. Nothing here was measured on an L4. FP16, compiled for sm_89.",
    "",
    "- **bound**: the launch cannot be faster. It leaves out latency, bank conflicts and cache misses.",
    "- **estimate**: fitted to times of an H200, so it is a guess here; the band holds 80 % of the H200's times. An",
    "  L4 has a quarter of the tensor rate per multiprocessor: the band is less sure than there." +
        if $unfitted == [] then "" else "\n  No time was fitted for " + ($unfitted | map("`\(.)`") | join(", ")) +
            ": their estimates have the weights of all\n  kernels, so do not rank them against each other." end,
    "- **clocks**: 795 MHz is the base, 2040 MHz the boost. cuBLAS reaches 53 to 71 TFLOP/s within the 72 W, which",
    "  takes \($p.low | round) to \($p.high | round) MHz with busy tensor cores: the power-limited clock here. A",
    "  kernel that keeps them less busy draws less and clocks higher.";
def canonical_words:
    "Batch 2, 8 heads, length 512, head dim 64, full attention.", "",
    "- **under 25 us**: *impossible*: the bound at boost is above it. *not under the power limit*: the bound is",
    "  above it at any power-limited clock. *yes*: the band at the lowest power-limited clock is below it.",
    "  *unlikely*: the band at boost is above it. *open*: none of these.",
    "- **needs**: at a lower clock 25 us is impossible: that is sure. **estimate says**: the clocks between which",
    "  the estimate reaches 25 us, from the low to the high end of its band; \"-\" where both are above 2040.";
def story_words:
    "The story is what was measured or hoped for on an L4 before this project: 2870 us for a scalar kernel, 839 us",
    "for the best hand kernel, 47 us for PyTorch's attention (22 us in another harness).";
def rules_words:
    "The tile that each kernel's rules select on an L4, by head dim, with the number of shapes of the grid that it",
    "serves. A multiprocessor of an L4 has 100 KiB of shared memory and a block at most 99; of an H200 228 and 227.",
    "So a tile that leaves an H200 room for two blocks may leave an L4 one warp per scheduler, and 58 multiprocessors",
    "run other waves than 132. The rules for sm_89 alone were chosen by these tables, among tiles of equal bound by",
    "estimate and warps per multiprocessor: of `light` and `mma` at few tiles and of `wmma_qk` and `wmma` up to head",
    "dim 128, of `mma` at head dim 128. No time of an L4 confirms them.";
def grid_words:
    "Bound in us at 2040 MHz, what binds, and after the slash the estimate. Full rows: `bound.jsonl`.";
