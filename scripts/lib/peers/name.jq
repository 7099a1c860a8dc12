# The name of a shape, and what tells two of them apart.
def name: "\(.batch),\(.heads),\(.seq),\(.dim)";
def key: [.batch, .heads, .seq, .dim, .causal];
def options: "--batch \(.batch) --heads \(.heads) --seq \(.seq) --dim \(.dim)" +
    if .causal then " --causal" else "" end;
# Our names of the peers, by the names of their records.
def peer_names: {torch_flash: "fa2", torch_cudnn: "cudnn", flash_attn_3: "fa3", torch_efficient: "efficient",
    torch_math: "math"};
