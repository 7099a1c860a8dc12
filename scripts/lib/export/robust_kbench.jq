# Rows (with jq -s) as task folders of robust-kbench, a line per file: PATH, a tab, the contents. forward.cu is the
# fastest kernel; all stand in kernels/. The configurations vary batch and heads at the problem's lengths.
# $sources: [the files of kernels/, include/ and the launchers, by name].
include "export/kernel";
include "export/torch_task";

def function($p): [
    "import torch",
    "import torch.nn as nn",
    "import torch.nn.functional as F",
    "",
    "",
    "def forward_fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:",
    "    \"\"\"",
    "    Attention forward: softmax(\($p.scale) * q k^T\(if $p.causal then " + causal mask" else "" end)) v in FP16.",
    "",
    "    Args:",
    "        q (torch.Tensor): queries, shape (batch, heads, seq_q, dim).",
    "        k (torch.Tensor): keys, shape (batch, kv_heads, seq_kv, dim).",
    "        v (torch.Tensor): values, shaped like k.",
    "",
    "    Returns:",
    "        torch.Tensor: output, shaped like q.",
    "    \"\"\""] + (attention($p) | indented(4)) + [
    "",
    "",
    "class Model(nn.Module):",
    "    def forward(self, q, k, v, fn=forward_fn):",
    "        return fn(q, k, v)",
    "",
    "",
    "def get_inputs(batch=\($p.batch), kv_heads=\($p.kv_heads), seq_q=\($p.seq_q), seq_kv=\($p.seq_kv)):",
    "    q = torch.randn(batch, kv_heads * \($p.heads / $p.kv_heads), seq_q, \($p.dim), dtype=torch.float16)",
    "    k, v = (torch.randn(batch, kv_heads, seq_kv, \($p.dim), dtype=torch.float16) for _ in range(2))",
    "    return [q, k, v]",
    "",
    "",
    "input_names = [\"q\", \"k\", \"v\"]"] | join("\n") + "\n";

def config($p): ($p | {batch, kv_heads, seq_q, seq_kv}) as $one |
    {single_input_configs: [$one], single_init_configs: [{}], single_shared_configs: [{}],
     multi_input_configs: ([$one] + [(1, 2, 4, 8) as $b | (1, 2) as $h |
        $one + {batch: $b, kv_heads: ($h * $p.kv_heads)}] | unique),
     multi_init_configs: [{}], multi_shared_configs: [{}]};

# The kernel stands before PyTorch's headers, which may take CUDA's operators of half away.
def extension: "#undef __CUDA_NO_HALF_OPERATORS__\n#undef __CUDA_NO_HALF_CONVERSIONS__\n" +
    "#undef __CUDA_NO_HALF2_OPERATORS__\n" + one_file($sources[0]; "torch_main.cu");

problems | group_by(.problem | task)[] | .[0].problem as $p | ($p | task) as $name |
file("\($name)/func_forward.py"; function($p)),
file("\($name)/config_forward.json"; config($p)),
(fastest($sources[0]) | (.[0:1][] | file("\($name)/forward.cu"; extension)),
    (.[] | file("\($name)/kernels/\(.kernel).cu"; extension)))
