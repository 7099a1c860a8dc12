# The page of the L4, by scripts/evidence/l4.sh.

# The registry's kernels that run on an L4, the lowest rung first.
def rungs: .[] | select(.kind == "hand" and .variant_of == null and .arch_specific != true).name;

# The runs of the grid: each of those with the tile of its rules on each shape. $registry: of --list-kernels.
def grid: inputs | select(startswith("--")) | "--kernel \($registry | rungs) \(.)";

# A record of --compile-only --bound --runs as a row of the page: what the tile needs and what bounds it. $lines: the
# options of the runs; a line without a tile took that of the rules.
def row:
    (($lines | split("\n"))[.provenance.line - 1] | capture("^--kernel \\S+ (?<options>.*\\S) +--batch 2 ")
        // {} | select(.options // "" | test("--m ") | not) // {}) +
    {kernel, variant, rule: (($lines | split("\n"))[.provenance.line - 1] | test("--m ") | not),
        problem: (.problem | {batch, heads, seq: .seq_q, dim, causal}), config, status, reason,
        registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, blocks_per_sm: .occupancy.blocks_per_sm,
        bound, code_sha256: .provenance.code_sha256, git: .provenance.git};

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
    "Measured on an L4 before this project, by others: 2870 us for a scalar kernel, 839 us",
    "for the best hand kernel, 47 us for PyTorch's attention (22 us in another harness).";
def rules_words:
    "The tile that each kernel's rules select on an L4, by head dim, with the number of shapes of the grid that it",
    "serves. A multiprocessor of an L4 has 100 KiB of shared memory and a block at most 99; of an H200 228 and 227.",
    "So a tile that leaves an H200 room for two blocks may leave an L4 one warp per scheduler, and 58 multiprocessors",
    "run other waves than 132. The rules for sm_89 alone were chosen by these tables, among tiles of equal bound by",
    "estimate and warps per multiprocessor: of " + ([$registry[] | select(any(.rules[]?;
        .min_arch == 89 and .max_arch == 89)) | "`\(.name)`"] | join(", ")) + ".",
    "No time of an L4 confirms them.";
def feature_words:
    "The same shape through `mma`'s rules: FP8, gradients (five products for two) and features, beside FP16.",
    "Bound in us at 2040 and 795 MHz; **of FP16** is the bound over that of the first row. An estimate that equals",
    "the bound says no more than the bound does.";
def grid_words:
    "Bound in us at 2040 MHz, what binds, and after the slash the estimate. Full rows: `bound.jsonl.gz`.";

# The page of the L4, from rows of l4/row.jq (with -s). $rank: bound_rank.json, which has the estimate's weights.
# The clock under the power limit of 72 W: cuBLAS reaches 53 to 71 TFLOP/s there; 58 multiprocessors of 1024 FLOP a
# clock need 892 to 1195 MHz for that. A kernel that keeps the tensor cores less busy draws less and clocks higher.
def page:
    def power_mhz: {low: (53e6 / (58 * 1024)), high: (71e6 / (58 * 1024))};
    def digits: if . == null then "-" elif . >= 100 then round else . * 10 | round / 10 end;
    # The estimate at another clock: all but the launch and DRAM scales with it.
    def at($us; $b; $mhz): $us * $b.clock_mhz_max / $mhz;
    def bound_at($mhz): [.bound.clocks / $mhz, .bound.dram_us] | max;
    def rung: . as $name | [$registry | rungs] | index($name) // length; # a kernel's place on the ladder
    def tile: .config | "m=\(.m) n=\(.n) warps=\(.warps) vec=\(.vec) stages=\(.stages)" +
        (if .splits > 1 then " splits=\(.splits)" else "" end);
    def least_mhz: if .bound.dram_us >= 25 then null else .bound.clocks / 25 end; # 25 us is impossible below
    def guessed_mhz($us): $us * .bound.clock_mhz_max / 25; # where the estimate is 25 us
    def verdict: power_mhz as $p |
        if .bound.us > 25 then "impossible"
        elif bound_at($p.high) > 25 then "not under the power limit"
        elif at(.bound.estimate_us_high; .bound; $p.low) < 25 then "yes"
        elif at(.bound.estimate_us_low; .bound; 2040) > 25 then "unlikely"
        else "open" end;
    def occupancy: [.registers, (.smem_bytes / 1024 | digits), .blocks_per_sm, .blocks_per_sm * .config.warps];
    def is_canonical: .problem == {batch: 2, heads: 8, seq: 512, dim: 64, causal: false};

    def canonical_table: power_mhz as $p |
        "| kernel | tile | bound, us at 2040 MHz | power-limited | 795 MHz | binds, then " +
        "| estimate, us at 2040 MHz (band) | power-limited | registers | shared memory, KiB | blocks per SM " +
        "| warps per SM | under 25 us | needs, MHz | estimate says, MHz |",
        "|" + "---|" * 15,
        (.[] | ["`\(.kernel)`", tile + (if .rule then ", by the rules" else "" end), (.bound.us | digits),
            "\(bound_at($p.high) | digits) to \(bound_at($p.low) | digits)", (bound_at(795) | digits),
            "\(.bound.binds), \(.bound.second)",
            (.bound | "\(.estimate_us | digits) (\(.estimate_us_low | digits) to \(.estimate_us_high | digits))"),
            (.bound as $b | [$p.high, $p.low] | map(at($b.estimate_us; $b; .) | digits) | join(" to ")),
            occupancy[], verdict, (least_mhz | digits),
            (if .bound.us > 25 or guessed_mhz(.bound.estimate_us_low) > 2040 then "-"
             else [.bound | .estimate_us_low, .estimate_us_high] as [$low, $high] |
                "\(guessed_mhz($low) | round) to \(guessed_mhz($high) | round)" end)] |
            "| " + (map(tostring) | join(" | ")) + " |");

    def shape: .problem | "\(.batch),\(.heads),\(.seq),\(.dim)" + (if .causal then " causal" else "" end);
    def cell:
        if .bound.us then "\(.bound.us | digits) \(.bound.binds) / \(.bound.estimate_us | digits)" else .status end;
    def grid_table: (map(.kernel) | unique_by(rung)) as $kernels |
        "| B,H,S,D | " + ($kernels | map("`\(.)`") | join(" | ")) + " |", "|---|" + "---|" * ($kernels | length),
        (group_by(.problem | [.dim, .causal, .seq, .batch])[] | . as $rows | "| \(.[0] | shape) | " +
            ($kernels | map(. as $k | $rows | map(select(.kernel == $k)) | if . == [] then "-" else .[0] | cell end) |
                join(" | ")) + " |");
    def rule_table:
        "| kernel | served by | tile | head dim | registers | shared memory, KiB | blocks per SM | warps per SM " +
        "| shapes |",
        "|" + "---|" * 9,
        (map(select(.bound.us)) | group_by([(.kernel | rung),
            .problem.dim, tile])[] | .[0] as $one | [$one | "`\(.kernel)`", "`\(.variant)`", tile, .problem.dim,
                occupancy[]] + [length] | "| " + (map(tostring) | join(" | ")) + " |");

    def feature_table: .[0].bound.us as $fp16 |
        "| options | kernel | tile | bound | at 795 MHz | of FP16 | binds, then | estimate (band) | registers " +
        "| shared memory, KiB | blocks per SM | warps per SM |", "|" + "---|" * 12,
        (.[] | ["`\(.options // "--dtype fp16")`", "`\(.variant)`", tile, (.bound.us | digits),
            (bound_at(795) | digits), (.bound.us / $fp16 * 100 | round / 100), "\(.bound.binds), \(.bound.second)",
            (.bound | "\(.estimate_us | digits) (\(.estimate_us_low | digits) to \(.estimate_us_high | digits))"),
            occupancy[]] | "| " + (map(tostring) | join(" | ")) + " |");

    map(select(.options)) as $featured | map(select(.options | not)) |
    map(select(is_canonical)) as $canonical | map(select(.rule)) as $grid | power_mhz as $p |
    ([($grid + $featured)[].variant] | unique - ($rank[0].weights | keys)) as $unfitted |
    head($p; $unfitted), "", "## The canonical shape", "", canonical_words, "", ($canonical | unique | sort_by(
        [(.rule | not), (.kernel | rung)]) | canonical_table), "",
    story_words, "",
    ($canonical | map(select(verdict == "yes")) as $yes | map(select(verdict == "impossible")) as $no |
        "**Which rungs must be below 25 us: " + (if $yes == [] then "none is sure" else
            ($yes | map("`\(.kernel)` (\(tile))") | unique | join(", ")) end) + ".** " +
        "Impossible: \($no | map("`\(.kernel)`") | unique | join(", ")). " +
        "Open: \(map(select(verdict == "open")) | map("`\(.kernel)` (\(tile))") | unique |
            if . == [] then "none" else join(", ") end)."), "",
    "## FP8, gradients and features", "", feature_words, "",
    ([$canonical[] | select(.kernel == "mma" and .rule)][:1] + $featured | feature_table), "",
    "## The rules' tiles", "", rules_words, "", ($grid | rule_table), "",
    "## The grid", "", grid_words, "", ($grid | map(select(is_canonical | not)) + ($canonical | map(select(.rule)))
        | unique_by([.kernel, .problem]) | grid_table);
