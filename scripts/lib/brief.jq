# The page of scripts/brief.sh. Sections are lists of lines; where the page is too long, the longest list is cut.
# $log: lines of leaderboard.jsonl; $board, $ladder: [the file]; $profiles: ncu gates; $scores: of evaluate.sh.

def digits($n): . * pow(10; $n) | round / pow(10; $n);
def us: if . == null then "-" elif . >= 100 then "\(round) us" else "\(digits(2)) us" end;
def interval: if . and all(.[]; . != null) then " (\(map(digits(3) | tostring) | join(" to ")))" else "" end;
def tile: . // {} | to_entries | map(select(.value != 0) | "\(.key)=\(.value)") | join(",");
def first_line: . // "" | split("\n")[0] | .[:220];
def where: .group | split("|") | "\(.[0]), \(.[1]), problem \(.[2])";

# What was scored twice, from the cache say, counts once.
def tried: $scores | unique_by(.key // tojson);
def winners: [tried[] | select(.combined_score // 0 > 0)] | sort_by(-.combined_score)[:5];

def task: ["# Task", "",
    "Write `fa_kernel`: O = softmax(scale * Q K^T + mask) V. FP16 in and out, sums and exponentials in FP32.",
    "Every element must be within 1e-3 of attention in FP64, and no less exact than plain FP16 attention.",
    "A candidate is checked on the CPU emulator under several thread schedules and a race detector, compiled for " +
    "\($arch), then timed in pairs against the incumbent. It must serve tails, K/V heads that several query heads " +
    "share, and both masks. Hidden problems have other shapes and inputs: shapes are parameters, not constants.", "",
    "Public problems (`fa_bench` options; where each runs):"] +
    ($problems | split("\n") | map(select(startswith("public ")) |
        capture("^public (?<w>[a-z]+) +(?<o>.*)$") | "- `\(.o)` (\(.w))"));

def limits: ($limits[0].device.smem_block_bytes // null) as $smem | ["", "# Limits of \($arch)", "",
    "- 65536 registers a multiprocessor, at most 255 a thread; at most 1024 threads a block; warps of 32.",
    if $smem then "- \($smem) bytes of shared memory a block at most." else empty end,
    "- Knobs arrive as macros: `FA_M`, `FA_N`, `FA_WARPS`, `FA_VEC`, `FA_STAGES`, `FA_SWIZZLE`, `FA_DIM`, " +
    "`FA_CAUSAL`. A line `// fa_bench: --m 64 --warps 4` in the file sets them.",
    "- A tile that cannot work is refused by a `static_assert` with a sentence."];

# The contract; of fa_params the part of dense forward.
def abi: ["", "# Contract (`include/fa_params.h`)", "",
    "A file has `FA_KERNEL_INFO(.threads = ..., .smem_dynamic_bytes = ...);` and " +
    "`extern \"C\" __global__ void fa_kernel(const __grid_constant__ fa_params p)`.",
    "- Layout: q, o `[batch, heads, seq_q, dim]`, k, v `[batch, kv_heads, seq_kv, dim]` of `fa_element`, by strides " +
    "in elements. That of dim is 1; the others may leave gaps and have any order.",
    "- Alignment: addresses and strides are multiples of one element alone. Look before a 16-byte access.",
    "- Heads: query head h reads K/V head h / (heads / kv_heads).",
    "- Lengths: any seq_q and seq_kv. Rows and keys of a last tile that are not there are neither read nor written.",
    "- Mask: causal is bottom-right: row i sees key j iff j <= i + seq_kv - seq_q. A row that sees no key gives 0.",
    "- Blocks: tiles_m * heads * batch * splits, in grid.x; or fewer with `.grid = FA_GRID_PERSISTENT`.",
    "- `lse`, where not NULL and `.writes_lse = 1`: ln of the sum of e^score, -inf for a row that sees no key.",
    "- Features (\($features)) are asked for by the macro FA_FEATURES. Say which it has in `.serves` (default none); " +
    "another is refused by name. `docs/features.md` has their meaning and fields.",
    "- Gradients (`--op backward`): `.serves` has FA_FEATURE_BACKWARD, and `fa_params.dout` is not NULL. fa_before " +
    "and fa_after may surround fa_kernel. `docs/backward.md` has the formulas, " +
    "`scripts/lib/score/backward.txt` the problems for `evaluate.sh --problems`.",
    "- What it cannot do without, it says: `// FA_NEEDS: \($needs)` (some of them); then it is judged on the rest " +
    "alone.",
    "", "```c"] +
    ($abi | split("\n") | .[:([.[] | test("ABI 3")] | index(true)) // length] |
        map(select(test("^ +(/\\*|\\* )|^$") | not))) + # not the sentences between the fields: they are above
    ["    /* ... fields of features */", "} fa_params;", "```"];

# Paired ratios: the leaderboard over what it beat, the ladder over the rung below.
def times: "\(digits(3)) times as fast as";
def over: if .ratio then ", \(.ratio | times) \(.kernel) \(.config | tile)\(.ratio_ci95 | interval)" else "" end;
# The problem of a group as the ladder writes it, where it can.
def short: .group | split("|")[2] // "" | split(",") |
    if .[1] == .[2] and .[3] == .[4] and .[6] == "full" then "\(.[0]),\(.[1]),\(.[3]),\(.[5])" else null end;
def timed: [$ladder[0][]? | select(.p50_us)];
# On each problem the fastest of all that is known. A leader of sweeps is named where it is the fastest, too.
def best: ["", "# Best so far", ""] +
    (timed | group_by(.problem) | map(min_by(.p50_us) | . as $row |
        "- \(.problem): `\(.kernel)` \(.p50_us | us)" +
        ([$board[0][] | select(short == $row.problem).kernels[].p50_us // empty] |
            if . == [] or min >= $row.p50_us then ", the fastest" else ", a tile below is faster" end))) +
    [$board[0][] | . as $g | short as $problem | (.kernels | map(.p50_us // empty) | min) as $least |
        (timed | map(select(.problem == $problem)) | min_by(.p50_us)) as $other | "\(where):",
        (.kernels | to_entries | sort_by(.value.p50_us)[] | {kernel: .key} + .value |
            "- `\(.kernel)` \(.knobs): \(.p50_us | us), \(.registers) registers, \(.smem_bytes) bytes shared" +
            (if $other and $other.p50_us < .p50_us then
                if $g.leader == .kernel then " (leads the sweeps; `\($other.kernel)` is faster)" else "" end
            elif .p50_us == $least then " (the fastest\(if $g.leader == .kernel then ", the leader" else
                "; `\($g.leader)` leads until it is beaten in a pair" end))" else "" end) + (.over // {} | over))] +
    (winners | map(
        "- \(.candidate) `\(.knobs)`: score \(.combined_score | digits(4)) by \(.score_by) against `\(.incumbent)`" +
        "\(.ratio_ci95 | interval)\(if .improved == false then ", within the noise" else "" end)"));
def rungs: [$ladder[0][]? | select(.ratio and .vs)] | if length == 0 then [] else
    ["", "# Kernels of the registry, each timed in pairs with another", ""] +
    (group_by(.problem) | map(sort_by(.p50_us)[]) | map(
        "- \(.problem): `\(.kernel)` \(.p50_us | us), \(.ratio | times) `\(.vs)`\(.ci95 | interval)"))
    end;

def failed: ([$log[] | select(.status | IN("pass", "beaten") | not) | "\(.status): \(.reason | first_line)"] +
    [tried[] | select(.combined_score == 0) | .text_feedback | split("\n") | .[:2] | join(" ") | .[:300]]) |
    if length == 0 then [] else ["", "# What was tried and failed", ""] +
    (group_by(.) | sort_by(-length) | map("- \(.[0])\(if length > 1 then " (\(length) times)" else "" end)")) end;

# What each value of a knob has reached at best.
def tiles: [$log[] | select(.status == "pass" and .p50_us and (.loosened | not))] | group_by([.group, .kernel]) |
    if length == 0 then [] else ["", "# The best time of each value of a knob", ""] + map(. as $rows |
        "- `\(.[0].kernel)` (\(length) tiles, \(.[0] | where)): " +
        ([.[] | . as $row | .knobs | split(",")[] | split("=") | {knob: .[0], value: .[1], us: $row.p50_us}] |
            group_by(.knob) | map("\(.[0].knob) " + (group_by(.value) | sort_by(.[0].value | tonumber? // 0) |
                map("\(.[0].value): \(map(.us) | min | us)") | join(", "))) | join("; "))) end;

def advice: ([$profiles[] | . as $p | .gates[] | select(.verdict == "FAIL" and .applies) |
        "- `\($p.kernel)` on \($p.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)"): " +
        "\(.gate) \(.measured | digits(2)) \(.unit // ""), should be \(.rule)"] +
    [$log[] | select((.spill_bytes // 0) > 0) | .kernel] as $spilled |
    [$spilled | group_by(.)[] |
        "- `\(.[0])`: \(length) tiles spill registers to local memory: fewer rows a thread, or more warps"] +
    [winners[] | . as $score | .text_feedback | split("\n")[] |
        select(test("SPILLS|warns|cannot be faster|stack")) | "- \($score.candidate): \(first_line)"]) | unique |
    if length == 0 then [] else ["", "# What the profile and the compiler say", ""] + . end;

def bytes: map(map(utf8bytelength + 1) | add // 0) | add // 0;
# The longest list loses its last line; none is cut below its heading and a line.
def shorter: (to_entries | map(select(.value | length > 4)) | max_by([.value] | bytes).key) as $longest |
    .[$longest] |= (if .[-1] == "- ..." then .[:-2] else .[:-1] end + ["- ..."]);

def brief:
    [task, limits, abi] as $fixed | ($chars - ($fixed | bytes)) as $room |
    [best, rungs, failed, advice, tiles] | until(bytes <= $room or all(.[]; length <= 4); shorter) |
    $fixed + . | add | until([.] | bytes <= $chars; .[:-1]) | join("\n");
