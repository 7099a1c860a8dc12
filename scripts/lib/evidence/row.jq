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
