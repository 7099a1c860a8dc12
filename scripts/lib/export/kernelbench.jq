# Rows (with jq -s) as files of KernelBench, a line each: PATH, a tab, the contents. Per problem its reference NAME.py
# (Model, get_inputs, get_init_inputs), and per kernel NAME_KERNEL.py with ModelNew, which builds the kernel.
# $sources: [the files of kernels/, include/ and the launchers, by name].
include "export/kernel";
include "export/torch_task";

def reference($p): [
    "import torch",
    "import torch.nn as nn",
    "import torch.nn.functional as F",
    "",
    "",
    "class Model(nn.Module):",
    "    def forward(self, q, k, v):"] + (attention($p) | indented(8)) + [
    "",
    "",
    "def get_inputs():",
    "    q = torch.randn(\($p.batch), \($p.heads), \($p.seq_q), \($p.dim))",
    "    k, v = (torch.randn(\($p.batch), \($p.kv_heads), \($p.seq_kv), \($p.dim)) for _ in range(2))",
    "    return [q, k, v]",
    "",
    "",
    "def get_init_inputs():",
    "    return []"] | join("\n") + "\n";

# The source stands in the file, because KernelBench executes text. PyTorch's headers come first there, and their flags
# take CUDA's operators of half away.
def candidate($row): [
    "# \($row | solution), fa_bench \($row.git // ""), \($row.p50_us) us on \($row.gpu)",
    "import torch.nn as nn",
    "from torch.utils.cpp_extension import load_inline",
    "",
    "source = r'''",
    ($row | one_file($sources[0]; "torch_main.cu")) + "'''",
    "flags = [f\"-U__CUDA_NO_{what}__\" for what in (\"HALF_OPERATORS\", \"HALF_CONVERSIONS\", \"HALF2_OPERATORS\")]",
    "extension = load_inline(name=\"\($row.kernel)_\($row.problem | task)\", cpp_sources=[], cuda_sources=[source],",
    "                        extra_cuda_cflags=[\"-O3\", *flags])",
    "",
    "",
    "class ModelNew(nn.Module):",
    "    def forward(self, q, k, v):",
    "        return extension.forward(q, k, v)"] | join("\n") + "\n";

problems | group_by(.problem | task)[] | (.[0].problem) as $p | ($p | task) as $name |
file("\($name).py"; reference($p)),
(fastest($sources[0])[] | file("\($name)_\(.kernel).py"; candidate(.)))
