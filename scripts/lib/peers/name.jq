# The name of a shape, its words for people, and what tells two of one file apart.
include "typed";
def name: "\(.batch),\(.heads)\(if .kv_heads then "/\(.kv_heads)" else "" end)," +
    "\(.seq)\(if .seq_kv then ":\(.seq_kv)" else "" end),\(.dim)";
def words: name + if .causal then " causal" else "" end + typed;
def key: [.batch, .heads, .kv_heads, .seq, .seq_kv, .dim, .causal, .strides];
def options: ["--batch \(.batch) --heads \(.heads) --seq \(.seq) --dim \(.dim)",
    ([[.kv_heads, "kv-heads"], [.seq_kv, "seq-kv"], [.strides, "strides"]][] | select(.[0]) | "--\(.[1]) \(.[0])"),
    (select(.causal) | "--causal"), typed_options] | join(" ");
# Our names of the peers, by the names of their records.
def peer_names: {torch_flash: "fa2", torch_cudnn: "cudnn", flash_attn_3: "fa3", flash_attn_4: "fa4",
    torch_efficient: "efficient", torch_math: "math"};
