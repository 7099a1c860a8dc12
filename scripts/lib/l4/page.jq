# The page of the L4, from rows of l4/row.jq (with -s).
# The clock under the power limit of 72 W: cuBLAS reaches 53 to 71 TFLOP/s there; 58 multiprocessors of 1024 FLOP a
# clock need 892 to 1195 MHz for that. A kernel that keeps the tensor cores less busy draws less and clocks higher.
def power_mhz: {low: (53e6 / (58 * 1024)), high: (71e6 / (58 * 1024))};
def digits: if . >= 100 then round else . * 10 | round / 10 end;
# The estimate at another clock: all but the launch and DRAM scales with it.
def at($us; $b; $mhz): $us * $b.clock_mhz_max / $mhz;
def bound_at($mhz): [.bound.clocks / $mhz, .bound.dram_us] | max;
def tile: .config | "m=\(.m) n=\(.n) warps=\(.warps) vec=\(.vec) stages=\(.stages)";
def story: {"scalar": "2870", "light": "839", "wmma_qk": "400 to 600, hoped for",
    "wmma": "under 25, hoped for"}[.kernel] // "-";
def verdict: power_mhz as $p |
    if .bound.us > 25 then "impossible"
    elif bound_at($p.high) > 25 then "not under the power limit"
    elif at(.bound.estimate_us_high; .bound; $p.low) < 25 then "yes"
    elif at(.bound.estimate_us_low; .bound; 2040) > 25 then "unlikely"
    else "open" end;
power_mhz as $p |
"# L4: what the machine code says without one", "",
"Written by `scripts/l4.sh`; needs no GPU. Nothing on this page was measured on an L4. Batch 2, 8 heads, length 512,",
"head dim 64, FP16, full attention; compiled for sm_89.", "",
"- **bound**: the launch cannot be faster. It leaves out latency, bank conflicts and cache misses.",
"- **estimate**: fitted to times of an H200, so it is a guess here; the band holds 80 % of the H200's times.",
"  An L4 has a quarter of the tensor rate per multiprocessor, and its own latencies: trust the band less than there.",
"- **clocks**: 795 MHz is the base, 2040 MHz the boost. cuBLAS reaches 53 to 71 TFLOP/s within the 72 W, which takes",
"  \($p.low | round) to \($p.high | round) MHz with busy tensor cores: the power-limited clock here. A kernel that",
"  keeps them less busy draws less and clocks higher.",
"- **under 25 us**: *impossible*: the bound at boost is above it. *not under the power limit*: the bound is above it",
"  at any power-limited clock. *yes*: the band at the lowest power-limited clock is below it. *unlikely*: the band at",
"  boost is above it. *open*: none of these.", "",
"| kernel | tile | bound, us at 2040 MHz | power-limited | 795 MHz | binds, then " +
"| estimate, us at 2040 MHz (band) | power-limited " +
"| registers | shared memory, KiB | blocks per SM | the story, us | under 25 us |",
"|---|---|---|---|---|---|---|---|---|---|---|---|---|",
(.[] | "| `\(.kernel)` | \(tile) | \(.bound.us | digits)" +
    " | \(bound_at($p.high) | digits) to \(bound_at($p.low) | digits)" +
    " | \(bound_at(795) | digits) | \(.bound.binds), \(.bound.second)" +
    " | \(.bound.estimate_us | digits) (\(.bound.estimate_us_low | digits) to \(.bound.estimate_us_high | digits))" +
    " | \(at(.bound.estimate_us; .bound; $p.high) | digits) to \(at(.bound.estimate_us; .bound; $p.low) | digits)" +
    " | \(.registers) | \(.smem_bytes / 1024 | digits) | \(.blocks_per_sm) | \(story) | \(verdict) |"), "",
"The story is what was measured or hoped for on an L4 before this project: 2870 us for a scalar kernel, 839 us for the",
"best hand kernel, 47 us for PyTorch's attention (22 us in another harness).", "",
(map(select(verdict == "yes")) as $yes | map(select(verdict == "impossible")) as $no |
    "**Which rungs must be below 25 us: " + (if $yes == [] then "none is sure" else
        ($yes | map("`\(.kernel)` (\(tile))") | join(", ")) end) + ".** " +
    "Impossible: \($no | map("`\(.kernel)`") | unique | join(", ")).")
