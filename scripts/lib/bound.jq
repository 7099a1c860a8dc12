# The static bound against measured times: points, and what is known of each.
include "evidence";
include "record";

# Records of --compile-only --bound --runs (with -s): what a point needs of each, by its options, a line of $options.
def compiled: ($options | split("\n")) as $lines | map({($lines[.provenance.line - 1]):
    {bound, code: .provenance.code_sha256, blocks_per_sm: .occupancy.blocks_per_sm, git: .provenance.git}}) | add // {};

# The first tool that these records (with -n) lacked.
def missing: first(inputs | if .status == "not_run" then .reason
    else .bound.unknown // empty | select(startswith("no nvdisasm")) end);

# The registry as one line of options per tile and shape to time, of the GPU's architecture. $only: kernels, or [].
# $shapes: bound/shapes.txt. Knobs that change the layout or the class alone vary too, but not to FP16 sums.
def drawn:
    ($shapes | split("\n") | map(select(. != "" and (startswith("#") | not)))) as $shapes |
    .[] | select(.kind == "hand") | .name as $k |
    select(($only | length) == 0 or ($only | index($k))) |
    [.values | {m, n, warps, vec, stages, swizzle, splits} | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] |
    [combinations | add] | .[] as $tile | $shapes[] | "--kernel \($k) \(.)\($tile)";

# A measured point with its bound at the clock it was measured with, or at the highest. $compiled: [the object of
# `compiled`]. $folders: lines of a commit and, after a tab, a folder with its kernels. code_of: the commit whose kernel
# has the machine code that was timed, or "today"; null: the bound is of other machine code.
def judged:
    ($folders | split("\n") | map(select(. != "") / "\t" | {(.[0]): .[1]}) | add // {}) as $folder_of |
    $folder_of[.measured_at] as $folder |
    (if $folder then .options_was = (.options | sub("^--kernel (?<k>\\S+)"; "--source \($folder)/kernels/\(.k).cu"))
        else . end) |
    $compiled[0][.options_was // ""] as $was | $compiled[0][.options] as $today |
    .code_of = (if .code == null then null elif .code == $was.code then .measured_at
        elif .code == $today.code then "today" else null end) |
    (if .code_of == .measured_at then $was else $today end // {}) as $c |
    ($c.bound // {unknown: "it does not compile today"}) as $b | del(.code, .measured_at) |
    if $b.clocks then
        . + {bound_us: ([$b.clocks / (.mhz // $b.clock_mhz_max), $b.dram_us] | max), binds: $b.binds} |
        .percent_of_bound = 100 * .bound_us / .us |
        .blocks_per_sm = $c.blocks_per_sm |
        . + ($b | {clocks, dram_us, clock_mhz_max, sm_count, grid, threads, pipe_clocks, estimate_terms_us})
    else .unknown = $b.unknown end;

# Measured points of an evidence file, each with the options that give its bound (run with -n). $kinds: {name: kind}.
# $file: its path. A point is a timed row of a kernel of ours: p50 in us, the clock where the row has it, and the hash
# of the machine code that was timed. A pair counts with its solo time, in which the clock was measured.
def points:
    # "m=64,n=128" as an object; the sweeps' rows have it instead of a config.
    def knobs: if type == "string" then split(",") | map(split("=") | {(.[0]): .[1]}) | add else . end;

    inputs | rows | select($kinds[.variant // .kernel] == "hand" and (.status // "pass") == "pass") |
    (.timing.p50_us // .solo_us // .p50_us // .us) as $us | select($us | type == "number") |
    (.config // (.knobs | knobs)) as $config | select($config and (.arch // .ptxas.arch // "sm_90a") == "sm_90a") |
    shape as $p | (.variant // .kernel) as $kernel |
    {file: ($file | ltrimstr("evidence/h200/")), kernel: $kernel, us: $us,
        mhz: (.timing.sm_clock_mhz.p50 // (.sm_clock_mhz | numbers) // null),
        code: (.code_sha256 // .provenance.code_sha256 // null),
        measured_at: ((.git // .provenance.git // "") | rtrimstr("-dirty")),
        problem: ($p | "\(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)\(typed)"),
        options: (["--kernel \($kernel) --arch sm_90a --batch \($p.batch) --heads \($p.heads) --seq \($p.seq_q)",
            "--kv-heads \($p.kv_heads // $p.heads) --seq-kv \($p.seq_kv // $p.seq_q) --dim \($p.dim)",
            ($p | select(.causal) | "--causal"), ($p | typed_options),
            ($config | to_entries[] | select(.value != null) | "--\(.key) \(.value)")] | join(" "))};

# Points with their bounds (with jq -s) as a summary: how many lie below their bound. Only a point whose bound is of the
# machine code that was timed is a proof; the others are counted. $seconds: what compiling and reading the machine code
# took. $git: the commit that it was compiled at.
def summary:
    def median: sort | .[length / 2 | floor];
    def shares: map(.percent_of_bound) | if length == 0 then null else {median: median, largest: max} end;
    def counts: {points: length, same_code: (map(select(.code_of)) | length)};

    map(select(.bound_us)) as $known | ($known | map(select(.code_of))) as $proofs |
    counts + {with_bound: ($known | length), seconds: $seconds, git: $git,
        below_bound: ($proofs | map(select(.percent_of_bound > 100))),
        other_code_below_bound: ($known | map(select(.code_of == null and .percent_of_bound > 100)) | length),
        unknown: (map(select(.bound_us | not)) | group_by(.unknown) | map({reason: .[0].unknown, points: length})),
        percent_of_bound: ($proofs | shares),
        kernels: ($known | group_by(.kernel) | map({kernel: .[0].kernel} + counts +
            {percent_of_bound: (map(select(.code_of)) | shares)})),
        files: (group_by(.file) | map({file: .[0].file} + counts))};

# The summary as text.
def text:
    def share: "median \(.median | round) %, largest \(.largest | round) %";
    "\(.with_bound) of \(.points) points have a bound, \(.same_code) of the machine code that was timed; " +
        "of these \(.below_bound | length) lie below it (of the others \(.other_code_below_bound)); " +
        "\(.seconds // 0) s",
    (.kernels[] | "\(.kernel): \(.same_code) of \(.points)" +
        if .percent_of_bound then "; the bound is \(.percent_of_bound | share) of the time" else "" end),
    (.unknown[] | "no bound for \(.points) points: \(.reason)"),
    (.below_bound[] | "BELOW: \(.us) us, bound \(.bound_us) us: \(.options)");

# Records of --runs (with -n) as points of bound_time.sh, with what is known of the bound. $points: options, by line.
def timed: ($points | split("\n")) as $lines | inputs |
    {kernel, variant, status, reason, config, problem, arch: .ptxas.arch,
        point: $lines[.provenance.line - 1],
        p50_us: .timing.p50_us, sm_clock_mhz: .timing.sm_clock_mhz.p50, percent_of_bound: .bound.percent_of_bound,
        bound_unknown: .bound.unknown, binds: .bound.binds, code_sha256: .provenance.code_sha256, git: .provenance.git};

# The points of bound_time.sh (with -s) as text.
def timed_text:
    def below: map(select((.percent_of_bound // 0) > 100));
    map(select(.p50_us)) as $timed |
    "\($timed | length) timed, \(map(select(.status == "infeasible")) | length) infeasible, " +
        "\(map(select(.status != "pass" and .status != "infeasible")) | length) others; " +
        "\($timed | below | length) below their bound",
    ($timed | group_by(.variant // .kernel)[] | (map(.percent_of_bound | values) | sort) as $shares |
        "\(.[0].variant // .[0].kernel): \(length) timed, the bound is " +
        if $shares == [] then "not known: \(.[0].bound_unknown)"
        else "median \($shares[length / 2 | floor] | round) %, largest \($shares[-1] | round) % of the time" end),
    (.[] | select(.status != "pass" and .status != "infeasible") | "\(.status): \(.reason): \(.point)"),
    ($timed | below[] | "BELOW: \(.percent_of_bound) %: \(.point)");
