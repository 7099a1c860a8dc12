# Rows (with jq -s) as CSV. A field that a record does not have is empty.
["kernel", "gpu", "arch", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "dim", "causal", "dtype",
 "m", "n", "warps", "vec", "stages", "swizzle", "acc", "splits", "maxreg", "status", "reason",
 "p50_us", "p90_us", "tflops", "registers", "smem_bytes", "spill_bytes", "vs", "ratio", "ratio_low", "ratio_high",
 "git", "code_sha256", "time"] as $names |
($names, (.[] | (.problem // {}) + (.knobs // {}) + . +
    {ratio_low: .ratio_ci95[0]?, ratio_high: .ratio_ci95[1]?} | [.[$names[]]])) | @csv
