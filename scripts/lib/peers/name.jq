# The name of a shape, its words for people, and what tells two of one file apart.
include "typed";
def name: "\(.batch),\(.heads),\(.seq),\(.dim)";
def words: name + if .causal then " causal" else "" end + typed;
def key: [.batch, .heads, .seq, .dim, .causal];
def options: ["--batch \(.batch) --heads \(.heads) --seq \(.seq) --dim \(.dim)", (select(.causal) | "--causal"),
    typed_options] | join(" ");
# Our names of the peers, by the names of their records.
def peer_names: {torch_flash: "fa2", torch_cudnn: "cudnn", flash_attn_3: "fa3", flash_attn_4: "fa4",
    torch_efficient: "efficient", torch_math: "math"};
