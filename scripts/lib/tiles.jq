# Lists of tiles to compile or run, and the tables of scripts/house/compile_all.sh and code_hashes.sh.
# The registry is the input of a list; $only: kernels, or []; $archs, $dims: comma-separated.

def count(f): map(select(f)) | length;
def number: ltrimstr("sm_") | rtrimstr("a") | tonumber;
def serves_arch($arch): ($arch | number) >= .min_arch and (.arch_specific != true or ($arch | endswith("a")));
# The options of a kernel's operator and of the type that it takes alone.
def operator: (if .op == "backward" then " --op backward" else "" end) +
    (if .dtype then " --dtype \(.dtype)" else "" end) +
    ({"4096": " --kv-dtype e4m3", "8": " --page-size 16"}["\(.asks)"] // ""); # of a rule: FA_FEATURE_*
# A head dimension of a kernel of that type (or null): e4m3 has multiples of 16.
def fitted($dtype): if $dtype then (tostring | tonumber + 15 | . - . % 16) else . end;
# Every combination of the values of these knobs, as options.
def combined: [to_entries[] | .key as $knob | [.value[] | " --\($knob) \(.)"]] | [combinations][] | add;
# Records (with -n), each with its point, a line of $points.
def with_points: ($points | split("\n")) as $lines | inputs | .point = $lines[.provenance.line - 1];

# A line of options per point to compile. $defaults: 1 for each kernel's default tile alone, at two lengths: all of one
# first, since most have the same code at the other, which is then in the cache.
def points_compiled:
    (if $defaults == 1 then " --seq 512", " --seq 8192" else "" end) as $seq |
    .[] | select(.kind == "hand") | select(($only | length) == 0 or (.name as $n | $only | index($n))) | . as $row |
    ($archs | split(",")[]) as $arch | select(serves_arch($arch)) |
    .dtype as $dtype | ($dims | split(",")[] | fitted($dtype)) as $dim | ("", " --causal") as $causal |
    "--kernel \(.name) --arch \($arch) --dim \($dim)\($causal)\(operator)" as $base |
    if $defaults == 1 then $base + $seq
    elif $causal != "" then empty
    else $base + (.values | combined) end;

# Records of --compile-only (with -n) as lines of compile_all.jsonl.
def line_compiled: with_points |
    (.point | capture("--kernel (?<kernel>[^ ]+) --arch (?<arch>[^ ]+) --dim (?<dim>[0-9]+)")) as $at |
    {point, kernel: $at.kernel, arch: (.ptxas.arch // $at.arch), status, reason, config,
        dim: ($at.dim | tonumber), registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes,
        spill_bytes: ((.ptxas.spill_store_bytes // 0) + (.ptxas.spill_load_bytes // 0)),
        warnings: (.ptxas.warnings // []), blocks_per_sm: .occupancy.blocks_per_sm,
        code_sha256: .provenance.code_sha256};

# All lines (with -s) as text: one per kernel and architecture.
def table_compiled:
    group_by([.kernel, .arch])[] |
    "\(.[0].kernel) \(.[0].arch): \(count(.status == "pass")) compile, " +
    "\(count(.status == "infeasible")) infeasible, " +
    "\(count(.status != "pass" and .status != "infeasible")) failed, " +
    "\(count(.status == "pass" and .spill_bytes > 0)) spill, \(count(.warnings | length > 0)) warn";

# What makes the script fail about a line, or nothing. $defaults: 1 when spills and all warnings count.
def bad_compiled:
    def serialized: any(.warnings[]; test("serialized"));
    def of_one_shape: .status == "infeasible" and ((.reason // "") | test("^[a-z0-9_]+ serves --dim .* only$"));
    def of_another_kernel: (.reason // "") | . == "" or test("^[a-z0-9_]+, which serves this problem: ");
    select((.status != "pass" and .status != "infeasible") or serialized or
        (.status == "infeasible" and of_another_kernel) or
        ($defaults == 1 and (of_one_shape | not) and
            (.status != "pass" or .spill_bytes > 0 or (.warnings | length) > 0))) |
    "FAIL \(.point): \(.status) \(.reason // "") spills \(.spill_bytes) \(.warnings | join("; "))";

# A line of options per point to run, without the knobs that only vary the layout (swizzle) or the class (acc). $only:
# kernels, or [] for those with a wmma tile grid.
def points_run:
    .[] | select(.kind == "hand") |
    select(if ($only | length) > 0 then .name as $n | $only | index($n) else .tensor_cores == "wmma" end) |
    .name as $k | .dtype as $dtype | ($dims | split(",")[] | fitted($dtype)) as $dim |
    "--kernel \($k) --dim \($dim)\(operator)" + (.values | {m, n, warps, vec, stages} | combined) + " ";

# The lines (with -n) of $points that are of today's source ($now, by kernel) and $arch.
def kept: ($points | split("\n") | map({(.): true}) | add) as $asked |
    inputs | select(.arch == $arch and .source_sha256 == $now[.kernel] and $asked[.point]);

# Records of runs for $arch (with -n) as lines of FILE.points.jsonl. $sources: hashes by kernel.
def line_run: with_points | (.point | capture("--kernel (?<kernel>[^ ]+) --dim (?<dim>[0-9]+)")) as $at |
    def where: if .backend == "cuda" then .arch else .backend end;
    {point, kernel: $at.kernel, m: .config.m, dim: ($at.dim | tonumber), $arch,
        ran: (if .device and .status != "infeasible" then .device | where else null end),
        status, reason, registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes,
        spill_bytes: .ptxas.spill_store_bytes, config, code_sha256: .provenance.code_sha256,
        source_sha256: $sources[$at.kernel], git: .provenance.git};

# How many lines of options there are (with -nR), by "KERNEL DIM".
def counts:
    def at: capture("--kernel (?<kernel>[^ ]+) --dim (?<dim>[0-9]+)") | "\(.kernel) \(.dim)";
    reduce inputs as $point ({}; .[$point | at] += 1);

# All lines (with -s) as the table: an object per kernel and dim. $all: [the counts of all points].
def table_run:
    group_by([.kernel, .dim]) | map({kernel: .[0].kernel, dim: .[0].dim, arch: .[0].arch,
        ran: (map(select(.status == "pass") | .ran) | group_by(.) | map({(.[0]): length}) | add // {}),
        git: (map(.git) | unique | join(" ")), of: ($all[0][.[0].kernel + " " + (.[0].dim | tostring)]),
        points: length, pass: count(.status == "pass"), infeasible: count(.status == "infeasible"),
        holes: count(.status != "pass" and (.status != "infeasible" or (.reason // "") == "")),
        m64_pass: count(.status == "pass" and .m == 64), spill: count(.status == "pass" and .spill_bytes > 0),
        reasons: (map(select(.status == "infeasible") | .reason | gsub("[0-9]+ bytes of"; "N bytes of")) |
            group_by(.) | map({reason: .[0], points: length}) | sort_by(-.points))});

# The table as text: a line per kernel and dim.
def run_text:
    .[] | (.ran | to_entries | map("\(.value) on \(.key)") | join(", ")) as $where |
    "\(.kernel) dim \(.dim) for \(.arch): \(.points) of \(.of) points, \(.pass) pass (\($where)), " +
    "\(.infeasible) infeasible, \(.holes) holes; M=64: \(.m64_pass) pass";

# A line that is a hole, as text, or nothing.
def bad_run:
    select(.status != "pass" and (.status != "infeasible" or (.reason // "") == "")) |
    "HOLE \(.point): \(.status) \(.reason // "")";

# The configurations that the registry's rules select, a line of options each. Per rule the largest head dim that it
# serves and, where that is 64, 128 or 256, one that is no multiple of 64. A rule counts on the architectures that it
# matches. Where a kernel has no rule for every problem of a dim, its default tile counts as one. splits 0 (as many as
# fill the GPU) becomes 1 and 3.
def hashes:
    def odd_dim: {"64": 40, "128": 72, "256": 136}[tostring] // empty;
    def tile_options: to_entries | map("--\(.key) \(.value)") | join(" ");
    def with_splits: if .splits == 0 then (.splits = 1), (.splits = 3) else . end;
    def matches($arch): (.min_arch == null or ($arch | number) >= .min_arch) and
        (.max_arch == null or ($arch | number) <= .max_arch);
    def is_for_all($dim): .max_dim >= $dim and
        .op == "forward" and # no other condition
        (del(.serves, .op, .config, .max_dim, .min_arch, .max_arch) | all(. == null));
    # With the rules' places in the registry; the defaults follow.
    def rules_and_defaults($arch):
        . as $row | [.rules | to_entries[] | select(.value | matches($arch))] as $rules |
        $rules[],
        ([64, 128, 256] | to_entries[] | select(.value as $dim | any($rules[]; .value | is_for_all($dim)) | not) |
            {key: (.key + ($row.rules | length)),
            value: {serves: $row.name, op: $row.op, dtype: $row.dtype, max_dim: .value, causal: null,
                config: $row.defaults}});

    . as $rows | ($archs | split(",")[]) as $arch |
    $rows[] | select(.kind == "hand" and .variant_of == null and serves_arch($arch)) |
    .name as $name | select(($only | length) == 0 or ($only | index($name))) |
    rules_and_defaults($arch) | .key as $index | .value |
    .serves as $serves | .max_dim as $max_dim |
    (if .causal == null then "", " --causal" elif .causal then " --causal" else "" end) as $mask |
    .dtype as $dtype | ($max_dim, ($max_dim | odd_dim | fitted($dtype))) as $dim |
    operator as $operator | (.config | with_splits | tile_options) as $tile |
    "--kernel \($serves) --arch \($arch) --dim \($dim)\($mask)\($operator) \($tile) #\($name):\($index + 1)";

# Records of --compile-only (with -n) as lines: options, whether it compiled, the hash of the machine code.
def line_hash: with_points | {point, status, reason, code_sha256: .provenance.code_sha256};

# All these lines (with -s) as text, one per rule: rule, options, hash. $rules: lines "OPTIONS #RULE".
def hashes_text:
    (map({key: .point, value: .}) | from_entries) as $by_point |
    $rules | split("\n")[] | select(. != "") | split(" #") as [$point, $rule] | $by_point[$point] |
    "\($rule) \($point) \(.code_sha256 // "\(.status): \(.reason)")";
