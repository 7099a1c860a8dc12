# The program of scripts/compare.sh. A case: a kernel on a problem, a GPU, at a pace, with its time or its reason.
include "record";

# A problem without what follows from the rest and without what is off, so that records of older versions compare.
def bare:
    if type != "object" then . else
        .heads as $heads | .seq_q as $seq | .dim as $dim | del(.flop, .bytes, .pairs) |
        if .kv_heads == $heads then del(.kv_heads) else . end |
        if .seq_kv == $seq then del(.seq_kv) else . end |
        if .kv_dtype? == .dtype then del(.kv_dtype) else . end |
        if .dim_v == $dim then del(.dim_v) else . end |
        with_entries(select(.value | IN(null, false, 0, "none", "packed", "fp16", "forward") | not))
    end;
def over($a; $b): if $b == null then $a else "\($a)/\($b)" end;
def words:
    if type != "object" then . // "-" else
        "\(.batch),\(over(.heads; .kv_heads)),\(over(.seq_q; .seq_kv)),\(over(.dim; .dim_v))" + typed +
        ([to_entries[] | select(.key | IN("batch", "heads", "kv_heads", "seq_q", "seq_kv", "dim", "dim_v", "dtype",
            "kv_dtype", "page_layout") | not) |
            if .key == "scale" then empty elif .value == true then .key elif .key == "op" then .value
            elif .key == "lengths" then "\(.value.q | length) lengths" else "\(.key) \(.value | tojson)" end] |
            map(" " + .) | add // "")
    end;
def tile: if type == "object" then to_entries | map(select(.value | IN(0, null, "fp32") | not) | "\(.key)=\(.value)") |
    join(",") else . // "" end;
def interval: if type == "array" and all(.[]; type == "number") then . else null end;
def one_case($gpu; $us; $ci):
    {kernel, problem: (.problem | bare), gpu: $gpu, tile: (.knobs // .config | tile), status: (.status // "pass"),
        us: $us, ci: ($ci | interval),
        code: (.code_sha256 // .provenance.code_sha256), time: (.time // .provenance.time),
        git: (.git // .provenance.git)};
def of_record:
    one_case(.device.name; .timing.p50_us; .timing.p50_ci95_us) + {reason: (.reason // "" | split("\n")[0]),
        pace: [.timing.l2 // "warm", .timing.pace.rest_ms // 0],
        vs: (if .vs.ratio then {kernel: .vs.kernel, ratio: .vs.ratio, ci: (.vs.ratio_ci95 | interval),
            code: .vs.code_sha256} else null end)};
def of_line($group): one_case(.gpu // ($group // "" | split("|")[0]); .p50_us; .p50_ci95_us) + {reason: (.reason // ""),
    pace: ["warm", 0], vs: null} | if .problem == null then .problem = ($group | split("|")[2:] | join(" ")) else . end;

# The values of one file as cases. $file: its number; $tiles: 1, the tile is part of the case; $kernels: these, or all.
def cases:
    def asked: select($kernels == [] or (.kernel | IN($kernels[])));
    if .schema == "fa_bench.result/1" then of_record
    elif (.kernels | type) == "object" then .group as $group | .kernels | to_entries[] | {kernel: .key} + .value |
        of_line($group)
    else of_line(.group) end |
    select(.kernel and (.us or .status != "pass")) | asked |
    . + {file: $file, key: ([.kernel, .problem, .gpu, .pace, if $tiles == 1 then .tile else null end] | tojson)};

def good: .status == "pass" and .us;
# Of a file's results of a case: each tile's last one; the fastest of those that are right, else the last.
def chosen: group_by(.tile) | map(.[-1]) | (map(select(good)) | min_by(.us)) // .[-1];
# How many times as fast the new one is, with the widest interval that both allow, and by what.
def measured($old; $new):
    def quotient($a; $b; $x; $y):
        {ratio: ($a / $b), ci95: (if $x and $y then [$x[0] / $y[1], $x[1] / $y[0]] else null end)};
    if $old.vs and $new.vs and $old.vs.kernel == $new.vs.kernel and $old.vs.code == $new.vs.code and $new.vs.code then
        quotient($new.vs.ratio; $old.vs.ratio; $new.vs.ci; $old.vs.ci) + {by: "paired with \($new.vs.kernel)"}
    else quotient($old.us; $new.us; $old.ci; $new.ci) + {by: "times"} end;
def verdict: ($noise / 100) as $n |
    if .ci95 == null then "no interval" elif .ci95[0] > 1 and .ratio > 1 + $n then "faster"
    elif .ci95[1] < 1 and .ratio < 1 / (1 + $n) then "slower" else "within noise" end;
def pair($old; $new):
    ($new // $old | {kernel, problem: (.problem | words), gpu}) + {old_us: $old.us, new_us: $new.us,
        old_tile: $old.tile, new_tile: $new.tile, old_git: $old.git, new_git: $new.git,
        same_code: (if $old.code and $new.code then $old.code == $new.code else null end)} +
    if $old == null then {verdict: "new"} elif $new == null then {verdict: "gone"}
    elif ($old | good) and ($new | good) then measured($old; $new) | .verdict = verdict
    elif $old | good then {verdict: "broken", reason: "\($new.status): \($new.reason)"}
    elif $new | good then {verdict: "right now"} else {verdict: "still not right"} end;

def order: {broken: 0, slower: 1, faster: 2, "right now": 3, "within noise": 4, "no interval": 5}[.verdict] // 6;
def pairs:
    group_by(.key) | if $history == 1 then
        .[] | sort_by(.time // "") | . as $all | range(1; length) as $i | pair($all[$i - 1]; $all[$i])
    else map(pair(map(select(.file == 0)) | if . == [] then null else chosen end;
        map(select(.file == 1)) | if . == [] then null else chosen end)) | sort_by([order, .ratio // 0])[] end;

def text:
    def us: if . == null then "-" else short end;
    def interval: if . then "\(.[0] | thousandths) to \(.[1] | thousandths)" else "-" end;
    def note: [.reason // empty, if .by and .by != "times" then .by else empty end,
        if .same_code then "same machine code" else empty end,
        if .old_tile and .new_tile and .old_tile != .new_tile then "\(.old_tile) -> \(.new_tile)" else empty end] |
        join("; ");
    (["kernel", "problem", "old us", "new us", "times as fast", "95 %", "verdict", "note"] | row),
    ([range(8) | "---"] | row),
    (.[] | [.kernel, .problem, (.old_us | us), (.new_us | us), (.ratio | thousandths), (.ci95 | interval), .verdict,
        note] | row),
    "",
    (group_by(.verdict) | sort_by(.[0] | order) | map("\(length) \(.[0].verdict)") | join(", ")),
    (map(select(.ratio)) | group_by(.kernel)[] | "\(.[0].kernel): \(map(.ratio) | mean | thousandths) times as fast " +
        "(geometric mean of \(length))");
