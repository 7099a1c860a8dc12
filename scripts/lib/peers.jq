# Problems of scripts/peers.sh, as shapes, and rows of peers.json. $pairs is 0 with --no-pairs.
include "record";

# The name of a shape, its words for people, and what tells two shapes of one file apart.
def name: "\(.batch),\(.heads)\(if .kv_heads then "/\(.kv_heads)" else "" end)," +
    "\(.seq)\(if .seq_kv then ":\(.seq_kv)" else "" end),\(.dim)";
def words: name + if .causal then " causal" else "" end + typed;
def key: [.batch, .heads, .kv_heads, .seq, .seq_kv, .dim, .causal, .strides];

# A shape as options of fa_bench.
def options: ["--batch \(.batch) --heads \(.heads) --seq \(.seq) --dim \(.dim)",
    ([[.kv_heads, "kv-heads"], [.seq_kv, "seq-kv"], [.strides, "strides"]][] | select(.[0]) | "--\(.[1]) \(.[0])"),
    (select(.causal) | "--causal"), typed_options] | join(" ");

# Our name of a peer, of a record.
def peer: {torch_flash: "fa2", torch_cudnn: "cudnn", flash_attn_3: "fa3", flash_attn_4: "fa4",
    torch_efficient: "efficient", torch_math: "math"}[.kernel] // .kernel;

# The first record that failed, else the fastest, else the first.
def best:
    map(select(.status == "pass" and .timing.p50_us != null)) as $good |
    map(select(.status | IN("infeasible", "not_run", "pass") | not)) as $bad |
    if $bad != [] then $bad[0] elif $good != [] then $good | min_by(.timing.p50_us) else .[0] end;

# A line of options as a shape. Its kind: what a server does with a cache of keys.
def shape:
    def value($name): (capture("--\($name) +(?<value>[^ ]+)").value) // null;
    def number($name; $default): value($name) | if . then tonumber else $default end;
    {batch: number("batch"; 2), heads: number("heads"; 8), kv_heads: number("kv-heads"; null),
        seq: number("seq"; 512), seq_kv: number("seq-kv"; null), dim: number("dim"; 64), causal: test("--causal"),
        strides: value("strides")} |
    .kind = (if .seq_kv == null then null elif .seq <= 8 then "decode" else "prefill" end) |
    with_entries(select(.value != null));

# The shapes (with -nR) whose name contains $only, in the element type $dtype.
def shapes:
    inputs | select(test("^ *(#|$)") | not) | shape |
    select("\(name),\(if .causal then "causal" else "full" end)" | contains($only)) |
    .dtype = $dtype;

# The table's row that already answers $shape for the kernels $asked, the peers $backends and $pairs.
def known:
    ({flash: "fa2"} as $names | $backends | split(",") | map($names[.] // .)) as $wanted |
    map(select(key == ($shape | key) and .asked == $asked and .status == "pass" and ($pairs == 0 or has("paired")) and
        (.peers | length) > 0 and
        ((.peers + (.absent // {})) as $answered | all($wanted[]; . as $w | $answered | has($w)))))[0] // empty;

# A library's record in the form of the peers' server. Input: the library alone; $pair: the kernel --vs it, or null;
# $name of the library. Only our own kernel's wrong result makes a pair "wrong".
def library:
    {kernel: $name, status, reason, timing, library, provenance: {compiler: .provenance.compiler}} +
    if $pairs == 0 or .status != "pass" then {}
    elif $pair == null then {paired: {status: "not_run", reason: "no kernel to pair with"}}
    else {paired: ($pair | {
        status: (if .check.passed == false then "wrong" elif .status == "pass" and .vs.ratio then "pass"
            else "error" end),
        reason, kernel_p50_us: .vs.p50_us, p50_us: .vs.other_p50_us, ratio: .vs.ratio, ratio_ci95: .vs.ratio_ci95,
        blocks: .vs.blocks})} end;

# The peers' records and those of the libraries, $more. A library that has a time stands for the peer of its name.
def with_libraries:
    map(select(peer as $name | any($more[]; .kernel == $name and .status == "pass") | not)) + $more;

# A row of peers.json. $shape of the grid, $record of our kernel, $peers: records of the peers, $wall: seconds of both,
# $asked: --kernel.
def row:
    def by_peer(f): map({(peer): f}) | add // {};
    ([$peers[].paired | select(.status == "wrong")][0]) as $wrong |
    ($record | if .status == "pass" and $wrong then
            .status = "wrong" | .reason = "paired: \($wrong.reason)" | .timing = null | .throughput = null
        else . end) as $r |
    (if $r.status == "pass" then $r.timing.p50_us else null end) as $ours |
    ([$peers[] | select(.status == "pass" and .timing.p50_us != null)] | by_peer(.timing.p50_us)) as $us |
    ($us | to_entries | min_by(.value)) as $best |
    ([$peers[] | select(.paired.status == "pass")] |
        by_peer(.paired | {ratio, ci95: .ratio_ci95, us: .p50_us, kernel_us: .kernel_p50_us})) as $paired |
    $shape + {kernel: $r.kernel, variant: $r.variant, arch: $r.ptxas.arch, config: $r.config, us: $ours,
        peers: $us, best_peer: $best.key,
        ratio: (if $ours and $best then $best.value / $ours else null end), tflops: $r.throughput.tflops,
        status: $r.status, reason: $r.reason, method: $r.timing.method, sm_clock_mhz: $r.timing.sm_clock_mhz.p50,
        asked: $asked, wall_s: $wall, code_sha256: $r.provenance.code_sha256,
        source_sha256: $r.provenance.source_sha256,
        git: $r.provenance.git, driver: $r.provenance.driver, time: $r.provenance.time,
        torch: (([$peers[] | select(.kernel == "flash_attn_3")] + $peers)[0].provenance.compiler),
        absent: ([$peers[] | select(.status != "pass")] | by_peer(.reason))} +
    ([$peers[] | select(.library)] | if . == [] then {} else
        {libraries: by_peer(.library | {name, version, sha256})} end) +
    if $pairs == 0 then {} else {$paired, paired_ratio: (if $ours then [$paired[].ratio] | min else null end),
        unpaired: ([$peers[] | select(.status == "pass" and .paired.status != "pass")] |
            by_peer(.paired.reason // "no cubin"))} end;

# The table with $row in the place of the shape's old one.
def with_row: map(select(key != ($row | key))) + [$row];

# Text: a row; a shape with $kernel, what would run it; the geometric means of the rows of $shapes.
def row_text:
    "\(words)  \(.variant // .kernel) \(.us | hundredths) us  " +
    "best peer \(.best_peer // "-") \(.peers[.best_peer // ""] | hundredths) us  ratio \(.ratio | hundredths)" +
    if .paired_ratio then ", paired \(.paired_ratio | hundredths)" else "" end +
    (if .status == "pass" then .unpaired // {} else {} end | to_entries |
        if . == [] then "" else "  not paired: \(map(.key) | join(", ")): \(.[0].value)" end) +
    if .status != "pass" then "  \(.status): \(.reason)" else "" end;
def shape_text: "\(words): \($kernel), peers";
def means_text:
    ($shapes[0] | map(key)) as $keys | map(select(key as $k | any($keys[]; . == $k))) | map(select(.ratio != null)) |
    if . == [] then "no ratio" else
        length as $all | map(.paired_ratio | values) as $paired |
        "geometric mean of best peer / ours over \($all) shapes: \(map(.ratio) | mean | thousandths)" +
        if $pairs == 0 or $paired == [] then "" else
            " (solo), \($paired | mean | thousandths) (paired" +
            if ($paired | length) < $all then ", over \($paired | length))" else ")" end
        end
    end;
