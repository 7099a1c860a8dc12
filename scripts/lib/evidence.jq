# How evidence files are read, which of their rows are current, and the index of a folder.
include "typed";

# How evidence files are read: their rows, at any depth, and the problem and target of a row.
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

# What is compiled for a device by default, as gpu_target of scripts/lib/gpu.sh: for a record without a compiler's
# figures, which is a library's.
def target: if type == "string" and test("^sm_(9|1[0-9])[0-9]$") then . + "a" else . end;

# A whole record, or an object about a kernel.
def is_row: type == "object" and has("kernel") and (has("code_sha256") or has("schema"));
def rows: if is_row then . elif type == "array" or type == "object" then .[] | rows else empty end;
# A row about a kernel of $kinds. One that was infeasible has no machine code and is left out.
def is_about($kinds): $kinds[.variant // .kernel] and (.status != "infeasible" or .code_sha256);

# The rows of an evidence file about a kernel, each with the options that compile it again and its machine code's hash.
# A row is a whole record, or an object with "kernel" and "code_sha256", at any depth of the file.
# $file: its path. $kinds: {name: "hand" or "library"}. Run with -n: the file may hold one value or many.
def candidates:
    # Was it compiled to write the log-sum-exp? A record says so in its options; of the other candidate its check does.
    def lse: ((.provenance.options? // []) | index(["-DFA_LSE=1"])) != null or .check.lse? != null;

    # What compiles the shape again: the tile. A name that a rule may have served by a variant needs the row's problem
    # in its place: then both are tried.
    def options($name; $served; $arch; $config):
        ($config, if $served then empty
            else {batch, heads, "kv-heads": .kv_heads, seq: .seq_q, "seq-kv": .seq_kv} end) as $rest |
        ["--kernel \($name) --arch \($arch) --dim \(.dim)", (select(.causal) | "--causal"),
            (select(.lse) | "--lse"), typed_options,
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

    inputs | rows | select(is_about($kinds)) | row;

# Lines of rows.jq (with jq -s): $sample of each file, evenly spread over it; 0: all.
def sampled:
    def spread: if $sample == 0 or length <= $sample then .
        else . as $all | [range($sample) | $all[. * ($all | length) / $sample | floor]] end;
    group_by(.file) | map(spread) | add // [] | .[];

# A record of --compile-only --runs: the options of its line of $options, and the hash of the machine code.
def code:
    {key: ($options | split("\n"))[.provenance.line - 1],
        value: (select(.status == "pass").provenance.code_sha256 // "none")};

# A line of rows.jq: is it current? $codes: the hashes of today, by options.
def current:
    .current = all(.made_of[]; if .options then any($codes[0][.options[]] == .code; .) else has("library") end) |
    del(.made_of);

# Lines of current.jq (with jq -s) as a line about $file.
def said_current:
    map(select(.file == $file)) | "\($file): \(map(select(.current)) | length) of \(length) current";

# Lines of evidence_current.sh --rows (with jq -s), counted by file.
def currency:
    group_by(.file) | map({file: .[0].file, looked_at: length, current: map(select(.current)) | length});

# What the index says of an entry's files, whose values are the input (jq -s): every commit that they name, and how many
# rows they have about a kernel. $kinds: {name: "hand" or "library"}. $files: a line each.
def facts:
    {entry: $entry, files: ($files | split("\n")),
        commits: ([.. | objects | .git | if type == "array" then .[] else . end | values | split(" ")[]] | unique),
        rows: ([.[] | rows | select(is_about($kinds))] | length)};

# README.md of an evidence folder ($dir), from a line for each entry (-s): {entry, files, commits, rows}.
# $entries: files.json. $currency: [{file, looked_at, current}].
def index:
    def commits: .commits |
        if . == [] then "-" elif length > 4 then "\(length) commits" else map("`\(.)`") | join(" ") end;
    ($currency[0] | map({(.file): .}) | add // {}) as $by_file |
    def current: .rows as $rows | (.files | map($by_file[.] // {looked_at: 0, current: 0})) as $seen |
        ($seen | map(.looked_at) | add) as $looked_at | ($seen | map(.current) | add) as $current |
        if $rows == 0 then "-" elif $looked_at == $rows then "\($current) of \($rows)"
        else "\($current) of \($looked_at) looked at, \($rows) in all" end;
    "# Evidence of \($dir)", "",
    "Written by `evidence_index.sh` (`make report`). A row is current while the machine code of its kernel and",
    "configuration is what compiles today (`evidence_current.sh`). A row that was made with other machine code, or",
    "does not say with which, is not current. A row of a library counts by the name of the library. Of a long",
    "file only some rows are looked at, evenly spread.", "",
    "| file | shows | made by | commit | current rows |", "|---|---|---|---|---|",
    (.[] | $entries[0][.entry] as $entry |
        "| `\($entry.file)` | \($entry.shows)" +
        "\(if (.files | length) > 1 then "; \(.files | length) files" else "" end) | " +
        "\(if $entry.makes == "by hand" then "by hand" else "`\($entry.makes)`" end) | \(commits) | \(current) |");

# Records with and without --l2-persist kv as rows: kernel, problem, state of the L2, both times, how many times as fast
# with it.
def l2_persist:
    def l2: .timing.l2 // (.provenance.command | capture("--l2 (?<l2>[a-z]+)").l2);
    def persist: .timing.l2_persist // (.provenance.command | capture("--l2-persist (?<p>[a-z]+)").p);
    [inputs | fromjson? | select(.problem)] | group_by([(.problem | [.seq_q, .seq_kv]), .kernel, l2]) | map(
        . as $both | def of($p): $both | map(select(persist == $p))[0]; of("none") as $none | of("kv") as $kv |
        .[0] | {kernel, variant, arch: .ptxas.arch, config,
        problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal, dtype}), l2: l2,
        none_us: $none.timing.p50_us, none_ci95: $none.timing.p50_ci95_us, kv_us: $kv.timing.p50_us,
        kv_ci95: $kv.timing.p50_ci95_us,
        ratio: (if $none.timing and $kv.timing then $none.timing.p50_us / $kv.timing.p50_us else null end),
        reason: ($none.reason // $kv.reason), gpu: .device.name, driver: .provenance.driver, git: .provenance.git,
        code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256});

# leaderboard.json: kernel and tile of each kernel's best on the canonical problem, by tabs.
def winners:
    [.[] | select(.group | endswith("|2,8,8,512,512,64,full|fp32"))][0].kernels // {} |
    to_entries[] | [.key, .value.knobs] | @tsv;
