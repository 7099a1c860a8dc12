# The rows of an evidence file about a kernel, each with the options that compile it again and its machine code's hash.
# A row is a whole record, or an object with "kernel" and "code_sha256", at any depth of the file.
# $file: its path. $kinds: {name: "hand" or "library"}. Run with -n: the file may hold one value or many.
include "evidence/row";
include "typed";

# Was it compiled to write the log-sum-exp? A record says so in its options; of the other candidate its check does.
def lse: ((.provenance.options? // []) | index(["-DFA_LSE=1"])) != null or .check.lse? != null;

# What compiles the shape again. A name that served it takes any problem (a large one, which no variant takes from it);
# any other name needs the row's own problem, by which the rules chose.
def options($name; $served; $arch; $config):
    (if $served then {batch: 64, seq: 8192}
     else {batch, heads, "kv-heads": .kv_heads, seq: .seq_q, "seq-kv": .seq_kv} end) as $size |
    ["--kernel \($name) --arch \($arch) --dim \(.dim)", (select(.causal) | "--causal"),
        (select(.lse) | "--lse"), typed_options,
        ($size + $config | to_entries | sort_by(.key)[] | select(.value != null) | "--\(.key) \(.value)")] | join(" ");

# One candidate of a row: a library has nothing to compile; one without a hash cannot be compared. What is in no
# registry and has neither tile nor code is a library of --vs library:FILE.
def made_of($name; $served; $arch; $config; $code):
    if $kinds[$name] == "library" or [$kinds[$name], $config, $code] == [null, null, null] then {library: $name}
    elif $kinds[$name] == null or ([$code, $config, $arch, .dim] | any(. == null)) then {unknown: $name}
    else {options: options($name; $served; $arch; $config), code: $code}
    end;

def row: . as $row | shape as $shape | (.arch // .ptxas.arch // (.device.arch? | target) // null) as $arch |
    (.variant // .kernel) as $name |
    (if (.vs | type) == "object" then .vs | {name: .kernel, arch: $arch, config, code: .code_sha256, dtype, lse: lse}
     elif .vs then {name: (.vs | split(":")[0]), arch: $arch, config: .vs_config, code: .vs_code_sha256}
     else null end) as $other |
    {file: $file, kernel: $name, git: (.git // .provenance.git), made_of: (
        [$shape + {lse: ($row | lse)} |
            made_of($name; true; $arch; $row.config; $row.code_sha256 // $row.provenance.code_sha256)] +
        [$other | values | . as $o | $shape + {lse: $o.lse, dtype: ($o.dtype // $shape.dtype)} |
            made_of($o.name; false; $o.arch; $o.config; $o.code)])};

inputs | rows | select(is_about($kinds)) | row
