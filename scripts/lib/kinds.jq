# What the files that scripts read must hold: the types of what is read, by kind. A key with "?" may be missing or null,
# "*" is every key; a word is a type, types with "|", "interval" (two numbers) or "knobs" ("m=64,n=128").
def problem: {"batch?": "number", "heads?": "number", "kv_heads?": "number", "seq_q?": "number", "seq_kv?": "number",
    "dim?": "number", "causal?": "boolean", "dtype?": "string", "scale?": "number", "flop?": "number"};
def kinds: {
    any: "object",
    record: {schema: "string", status: "string", "kernel?": "string", "variant?": "string", "reason?": "string",
        "config?": {"acc?": "string"}, "problem?": problem,
        "device?": {"backend?": "string", "name?": "string", "arch?": "string"},
        "ptxas?": {"arch?": "string", "registers?": "number", "smem_total_bytes?": "number",
            "spill_store_bytes?": "number"},
        "timing?": {"p50_us?": "number", "p90_us?": "number", "p50_ci95_us?": "interval",
            "sm_clock_mhz?": {"p50?": "number"}, "impossible?": "boolean"},
        "throughput?": {"tflops?": "number"}, "check?": {"loosened?": "boolean", "references?": ["object"]},
        "vs?": {"kernel?": "string", "variant?": "string", "ratio?": "number", "ratio_ci95?": "interval",
            "config?": "object", "accepted?": "boolean", "p50_us?": "number", "other_p50_us?": "number"},
        "provenance?": {"source_sha256?": "string", "code_sha256?": "string", "compiler?": "string",
            "driver?": "string", "git?": "string", "command?": "string", "options?": ["string"], "line?": "number",
            "stage_s?": {"*": "number"}}},
    line: {"key?": "string", group: "string", kernel: "string", knobs: "knobs", status: "string", "reason?": "string",
        "problem?": problem, "p50_us?": "number", "p90_us?": "number", "registers?": "number", "smem_bytes?": "number",
        "spill_bytes?": "number", "stage_s?": {"*": "number"}, "loosened?": "boolean", "git?": "string"},
    board: {group: "string", "leader?": "string", kernels: {"*": {knobs: "knobs", "kernel?": "string",
        "p50_us?": "number", "over?": {"kernel?": "string", "ratio?": "number", "config?": "object",
            "ratio_ci95?": "interval"}}}},
    best: {kernel: "string", knobs: "knobs", p50_us: "number"},
    row: {"kernel?": "string", "variant?": "string", "arch?": "string", "config?": "object", "status?": "string|object",
        "problem?": "string|object", "code_sha256?": "string", "git?": "string", "vs?": "string|object",
        "p50_us?": "number", "us?": "number", "ratio?": "number"},
    peer: {batch: "number", heads: "number", seq: "number", dim: "number", "status?": "string", "kernel?": "string",
        "config?": "object", "arch?": "string", "code_sha256?": "string", "us?": "number", "ratio?": "number",
        peers: {"*": "number|null"}, "paired?": {"*": {"ratio?": "number", "ci95?": "interval"}},
        "paired_ratio?": "number"},
    beside: {options: "string", kernel: "string", "variant?": "string", "config?": "object", "code_sha256?": "string",
        status: "string", problem: problem, "p50_us?": "number", "ratio?": "number",
        peers: [{peer: "string", status: "string", "reason?": "string", "solo_us?": "number", "ratio?": "number"}]},
    profile: {kernel: "string", problem: problem, gates: [{gate: "string", "verdict?": "string",
        "measured?": "number"}]},
    score: {schema: "string", candidate: "string", "combined_score?": "number", "text_feedback?": "string",
        "knobs?": "string", "ratio_ci95?": "interval"},
    point: {kernel: "string", problem: "string", us: "number", "mhz?": "number", "bound_us?": "number",
        "percent_of_bound?": "number", "file?": "string", "options?": "string", "pipe_clocks?": {"*": "number"},
        "estimate_terms_us?": {"*": "number"}},
    sweep: {kernel: "string", group: "string", "strategy?": "string", "candidates?": "number", "measured?": "number",
        "compiled_cold?": "number", "status?": {"*": "number"}, "seconds?": "number", "per_second?": "number"},
    rate: {gpu: "string", gpus: "number", machine: {gpus: "number", cores: "number"}, kernel: "string",
        "candidates?": "number", "seconds?": "number", per_second: "number"},
    rank: {fitted: "number", judged: "number", error: {median: "number", p90: "number"},
        weights: {"*": {"*": "number"}},
        kernels: [{kernel: "string", points: "number", median: "number", p90: "number"}],
        spaces: [{kernel: "string", problem: "string", tiles: "number",
            bound: {"spearman?": "number", regret_of_best_8: "number"}, prune_bound: {skipped: "number"},
            estimate: {"spearman?": "number", regret_of_best_8: "number"}, prune_estimate: {skipped: "number"}}]},
    bounded: {kernel: "string", problem: "object", "config?": "object", status: "string", "reason?": "string",
        "bound?": {"us?": "number", "binds?": "string", "pipe_clocks?": {"*": "number"}}},
    tile: {point: "string", "status?": "string", "reason?": "string"},
    gate: {gate: "string", value: "string", "at_least?": "number|string", "at_most?": "number|string"},
    case: {kernel: "string", verdict: "string", "tool?": "string", "args?": "string", "code_sha256?": "string"}};

def short_text: tojson | if length > 40 then .[:37] + "..." else . end;
# Where a value is not as it should be, a sentence each.
def faults($want; $at):
    if $want | type == "string" then
        if $want == "knobs" then
            if type == "string" and test("^([a-z]+=[a-z0-9]+(,|$))*$") then empty
            else "\($at) is \(short_text), want a tile such as \"m=64,warps=4\"" end
        elif $want == "interval" then
            if type == "array" and length == 2 and all(.[]; type | IN("number", "null")) then empty
            else "\($at) is \(short_text), want two numbers" end
        elif type as $t | $want | split("|") | any(. == $t) then empty
        else "\($at) is \(if type == "null" then "null" else "a \(type), \(short_text)" end), want \($want |
            split("|") | join(" or "))" end
    elif type as $t | ($want | type) != $t then "\($at) is a \(type), \(short_text), want an \($want | type)"
    elif type == "array" then .[] | faults($want[0]; "an element of \($at)")
    else . as $row | (if $at == "it" then "" else $at + "." end) as $before | $want | to_entries[] | .value as $type |
        if .key == "*" then $row | to_entries[] | .key as $key | .value | faults($type; "\($before)\($key)")
        else (.key | rtrimstr("?")) as $key | if $row[$key] == null then
                if .key | endswith("?") then empty else "\($before)\($key) is missing" end
            else $row[$key] | faults($type; "\($before)\($key)") end
        end
    end;
def fault($want): first(faults($want; "it"), null);

# A whole record: what the scripts read has the type it should have, or is not there.
def is_record: .schema? == "fa_bench.result/1" and fault(kinds.record) == null;
# Is the input (with jq -s) one whole record?
def record: length == 1 and (.[0] | is_record);

# What is wrong with a value of a kind; null where it is as it should be. "result" is a record or a line of a
# leaderboard, "compared" also a leaderboard, "row" a record, too.
def wrong($kind):
    def whole: fault(kinds.record) // if .status != "pass" then null
        else fault({kernel: "string", problem: {batch: "number", heads: "number", seq_q: "number", dim: "number"}}) end;
    if type != "object" then fault("object")
    elif $kind == "score" then
        if .schema == "fa_bench.score/1" then fault(kinds.score) else "it is no score of evaluate.sh (no schema)" end
    elif .schema == "fa_bench.result/1" and ($kind | IN("record", "row", "result")) then whole
    elif $kind == "record" then "it is no record of fa_bench (no schema)"
    elif $kind == "result" then
        if has("group") or has("knobs") or has("key") then fault(kinds.line)
        elif has("peers") then fault(if has("options") then kinds.beside else kinds.peer end)
        else "it is neither a record of fa_bench nor a line of a leaderboard" end
    elif $kind == "compared" then
        if has("kernels") then fault(kinds.board) else wrong("result") end
    elif $kind == "row" and has("config") and (has("code_sha256") or has("kernel")) then
        fault({kernel: "string"}) // fault(kinds.row) //
            if has("code_sha256") then null else "code_sha256 is missing" end
    else fault(kinds[$kind]) end;

# The values of a file (with -n), those of a list each; the first that is wrong ends it with 3.
def read($kind):
    foreach (inputs | if type == "array" then .[] else . end) as $value (0; . + 1; . as $number |
        ($value | wrong($kind)) as $why |
        if $why then "record \($number): \($why)" | halt_error(3) else $value end);
