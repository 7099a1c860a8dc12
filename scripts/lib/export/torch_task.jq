# What the task folders of KernelBench and robust-kbench share: their problem in PyTorch. The reference is PyTorch's own
# attention: these benches time it as the baseline.
include "export/kernel";

def mask: if .causal then "causal" else "full" end;
def task: "attention_b\(.batch)_h\(.heads)_kv\(.kv_heads)_q\(.seq_q)_kv\(.seq_kv)_d\(.dim)_\(mask)";

# Rows that such a task can hold: FP16 and whole.
def problems: map(select(.problem.dtype == "fp16"));

# The fastest of each kernel that can be exported, the fastest first.
def fastest($files): map(select(exportable($files) and .p50_us)) | group_by(.kernel) |
    map(min_by(.p50_us)) | sort_by(.p50_us);

# Lines of a function body: q, k, v to the result.
def attention($p): [
    if $p.kv_heads != $p.heads then
        "k, v = (x.repeat_interleave(\($p.heads / $p.kv_heads), dim=1) for x in (k, v))" else empty end,
    if $p.causal and $p.seq_q != $p.seq_kv then
        "mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])"
    else empty end,
    "return F.scaled_dot_product_attention(q, k, v, scale=\($p.scale)" +
    (if $p.causal | not then "" elif $p.seq_q == $p.seq_kv then ", is_causal=True" else ", attn_mask=mask" end) + ")"];
def indented($spaces): map(" " * $spaces + .);

def file($path; $value): "\($path)\t\($value | tojson)";
