# How evidence files are read, which of their rows are current, and the index of a folder.
include "record";

# The problem of a row: an object, or "B,H,S,D[ causal][ bf16]", or fields of the row itself.
def shape:
    if (.problem | type) == "object" then .problem
    elif .problem == null or (.problem | startswith("--")) then
        {batch, heads, kv_heads, seq_q: .seq, seq_kv, dim, causal: (.causal // false), dtype}
    else (.problem | split(" ")) as $words |
        ($words[0] | split(",") | map(tonumber)) as [$batch, $heads, $seq, $dim] |
        {batch: $batch, heads: $heads, seq_q: $seq, dim: $dim, causal: ($words | index("causal") != null),
            dtype: (if $words | index("bf16") then "bf16" else "fp16" end)}
    end;

# What a device compiles for by default (gpu_target of scripts/lib/gpu.sh): for a library's record, without ptxas.
def target: if type == "string" and test("^sm_(9|1[0-9])[0-9]$") then . + "a" else . end;

# A whole record, or an object about a kernel.
def is_row: type == "object" and has("kernel") and (has("code_sha256") or has("schema"));
def rows: if is_row then . elif type == "array" or type == "object" then .[] | rows else empty end;
# Has it machine code that can be another one today? What is infeasible or was not run has none.
def claims: (.status | IN("infeasible", "not_run") | not) or (.code_sha256 // .provenance.code_sha256?);

# The rows of an evidence file about a kernel, each with the options that compile it again and its machine code's hash.
# A row is a whole record, or an object with "kernel" and "code_sha256", at any depth of the file.
# $file: its path. $kinds: {name: "hand" or "library"}. $values: each row, too, also one without machine code.
# Run with -n: the file may hold one value or many.
def candidates:
    # Was it compiled to write the log-sum-exp? A record says so in its options; of the other candidate its check does.
    def lse: ((.provenance.options? // []) | index(["-DFA_LSE=1"])) != null or .check.lse? != null;

    # What compiles the shape again: the tile; also the row's problem, if a rule may have served the name by a variant.
    def options($name; $served; $arch; $config):
        ($config, if $served then empty
            else {batch, heads, "kv-heads": .kv_heads, seq: .seq_q, "seq-kv": .seq_kv} end) as $rest |
        ["--kernel \($name) --arch \($arch) --dim \(.dim)", (select(.causal) | "--causal"),
            (select(.lse) | "--lse"), typed_options, feature_options,
            ($rest | to_entries | sort_by(.key)[] | select(.value != null) | "--\(.key) \(.value)")] | join(" ");

    # One candidate of a row: a library has nothing to compile; one without a hash cannot be compared. What is in no
    # registry and has neither tile nor code is a library of --vs library:FILE.
    def made_of($name; $served; $arch; $config; $code):
        if $kinds[$name] == "library" or [$kinds[$name], $config, $code] == [null, null, null] then {library: $name}
        elif $kinds[$name] == null or ([$code, $config, $arch, .dim] | any(. == null)) then {unknown: $name}
        else {options: [options($name; $served; $arch; $config)], code: $code}
        end;

    def row: . as $row | shape as $shape | (.arch // .ptxas.arch // (.device.arch? | target) // null) as $arch |
        (.variant // .kernel) as $name |
        (if (.vs | type) == "object" then
            .vs | {name: (.variant // .kernel), served: (.variant != null), arch: $arch, config, code: .code_sha256,
                dtype, lse: lse}
         elif .vs then {name: (.vs | split(":")[0]), arch: $arch, config: .vs_config, code: .vs_code_sha256}
         else null end) as $other |
        {file: $file, kernel: $name, git: (.git // .provenance.git), made_of: (
            [$shape + {lse: ($row | lse)} |
                made_of($name; true; $arch; $row.config; $row.code_sha256 // $row.provenance.code_sha256)] +
            [$other | values | . as $o | $shape + {lse: $o.lse, dtype: ($o.dtype // $shape.dtype)} |
                made_of($o.name; $o.served; $o.arch; $o.config; $o.code)])};

    inputs | rows | select($kinds[.variant // .kernel]) | . as $row |
    if claims then row elif $values then {file: $file, kernel: .kernel, made_of: []} else empty end |
    if $values then .row = $row else . end;

# Rows about a kernel of $kinds (with -n), and how many of those rows have machine code.
def all_rows: inputs | rows | select($kinds[.variant // .kernel]);
def claiming: [inputs | select(claims)] | length;

# Lines of candidates (with jq -s): $sample of each file, evenly spread over it; 0: all. `all`: how many it has.
def sampled:
    def spread: if $sample == 0 or length <= $sample then .
        else . as $all | [range($sample) | $all[. * ($all | length) / $sample | floor]] end;
    group_by(.file) | map((map(select(.made_of != [])) | length) as $n | map(.all = $n) | spread) | add // [] | .[];

# A record of --compile-only --runs: the options of its line of $options, its status, the hash of the machine code.
def compiled:
    {options: ($options | split("\n"))[.provenance.line - 1], status, reason,
        code: (if .status == "pass" then .provenance.code_sha256 elif .status == "infeasible" then "none"
            else null end)};

# A line of candidates: is its machine code today's? null: that was not compiled. $compiled: lines of compiled.
def current:
    ($compiled | map({(.options): .code}) | add // {}) as $codes | inputs |
    .current = ([.made_of[] | if .options == null then has("library") else
        [$codes[.options[]]] as $today | if any($today[] == .code; .) then true
            elif any($today[] == null; .) then null else false end end] |
        if any(. == false) then false elif any(. == null) then null else true end) |
    .claims = (.made_of != []) | del(.made_of);

# Lines of current (with jq -s) as a line about $file.
def current_text:
    map(select(.file == $file and .claims)) | map(select(.current == null)) as $unknown |
    "\($file): \(map(select(.current)) | length) of \(length) current" +
        if $unknown == [] then "" else ", \($unknown | length) not looked at" end;

# README.md of an evidence folder $dir. $files: its files. $entries: files.json. Input (-s): evidence_current.sh --rows.
def index:
    (group_by(.file) | map({(.[0].file): .}) | add // {}) as $rows_of |
    def current: if . == null then "-" else length as $seen | (map(select(.current)) | length) as $n |
        "\($n) of \($seen)" + if $seen < .[0].all then " looked at, \(.[0].all) in all" else "" end end;
    "# Evidence of \($dir | split("/")[-1])", "",
    "Written by `evidence_index.sh` (`make report`). A row is current while the machine code of its kernel and",
    "configuration is what compiles today (`evidence_current.sh`). A row that was made with other machine code, or",
    "does not say with which, is not current. A row of a library counts by the name of the library. Of a long",
    "file only some rows are looked at, evenly spread.", "",
    "| file | shows | made by | current rows |", "|---|---|---|---|",
    (($files | split("\n")) as $there | $entries[0][] | .file as $file | select(any($there[]; . == $file)) |
        "| `\(.file)` | \(.shows) | `\(.makes)` | \($rows_of["\($dir)/\(.file)"] | current) |");

# Records with and without --l2-persist kv, a line per kernel, keys and L2: both times and their ratio, or why not.
def l2_persist:
    def l2: .timing.l2 // (.provenance.command | capture("--l2 (?<l2>[a-z]+)").l2);
    def persist: .timing.l2_persist // (.provenance.command | capture("--l2-persist (?<p>[a-z]+)").p);
    [inputs | fromjson? | select(.problem)] | group_by([.problem.seq_kv, .kernel, l2])[] |
    . as $both | def of($p): $both | map(select(persist == $p))[0]; of("none") as $none | of("kv") as $kv |
    [.[0].kernel, .[0].problem.seq_kv, (.[0] | l2), $none.timing.p50_us, $kv.timing.p50_us,
        (if $none.timing and $kv.timing then $none.timing.p50_us / $kv.timing.p50_us
            else $none.reason // $kv.reason end)] |
    map(. // "-") | @tsv;

# The registry: each hand-written kernel and the problem that it is swept on, by tabs. $records: of --compile-only on
# each line of $points, "--kernel NAME PROBLEM".
def swept:
    ($points | split("\n")) as $lines | .[] | select(.kind == "hand") |
    .name as $name | (.variant_of // .name) as $base |
    [$name, (first($records[] |
        select(.kernel == $base and (.variant // .kernel) == $name and .status == "pass") |
        $lines[.provenance.line - 1] | ltrimstr("--kernel \($base) ")) // "")] | @tsv;

# leaderboard.json: kernel and tile of each kernel's best on the canonical problem, by tabs.
def winners:
    [.[] | select(.group | endswith("|2,8,8,512,512,64,full|fp32"))][0].kernels // {} |
    to_entries[] | [.key, .value.knobs] | @tsv;
