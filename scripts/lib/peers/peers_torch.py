#!/usr/bin/env python3
"""PyTorch's scaled_dot_product_attention on fa_bench's problems: CUDA-graph times and parity.
"fa3" and "fa4" are FlashAttention 3 and 4, not_run where they cannot be imported. PEERS_SITE is a folder of packages
(scripts/evidence/peers_env.sh).

Times are medians over replays of one graph of many calls, queued back to back, so that no launch gap is in a sample.
A problem of --serve that names a "cubin" (fa_bench --cubin, made for it) has each backend timed a second time, against
that kernel in blocks A B B A: "paired" of its answer.
Exit: 0 pass, 1 wrong result, 2 usage, 4 not run (no PyTorch, no GPU)."""
import argparse
import contextlib
import datetime
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import site
import sys

import peers_calls
import peers_cubin
import peers_inputs

BACKENDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "fa3": None, "fa4": None,  # None: not PyTorch's
            "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
PACKAGES = {"fa3": "flash_attn_interface", "fa4": "flash_attn.cute"}
SAMPLE_US = 1000.0  # one graph lasts at least this long
MATH_SCORES = 2**28  # the unfused backend keeps batch*heads*seq*seq scores several times over
DENSE = dict.fromkeys(("chunk", "window", "softcap", "lengths", "page_size", "page_layout"))
DENSE.update(mask="none", op="forward", **dict.fromkeys(("alibi", "bias", "sinks", "v_in_k", "deterministic"), False))


def not_run(why):
    print(f"peers_torch.py: NOT-RUN: {why}", file=sys.stderr)
    sys.exit(4)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--batch", type=int, default=2)
    add("--heads", type=int, default=8)
    add("--seq", type=int, default=512)
    add("--dim", type=int, default=64)
    add("--causal", action="store_true")
    add("--dtype", choices=("fp16", "bf16"), default="fp16", help="element type (default: %(default)s)")
    add("--backends", default=",".join(BACKENDS), help="comma-separated (default: %(default)s)")
    add("--seed", type=int, default=42)
    add("--max-time", type=float, default=0.25, help="seconds of sampling per backend (default: %(default)s)")
    add("--warmup-ms", type=float, default=200,
        help="as scripts/peers.sh has our kernels warm up (default: %(default)s)")
    add("--serve", action="store_true",
        help="read problems from stdin, one JSON object a line; answer with one array a line")
    add("--dump", metavar="DIR",
        help="write the inputs drawn here to DIR (fa_bench --load), and time nothing; works without a GPU")
    add("--parity", metavar="DIR", nargs="+",
        help="each DIR holds q, k, v, o.npy and record.json of one run of fa_bench --dump: do O, FP64 attention and "
        "PyTorch's agree? exit 1 if not; works without a GPU")
    arguments = parser.parse_args()
    arguments.backends = arguments.backends.split(",")
    for name in arguments.backends:
        if name not in BACKENDS:
            parser.error(f"--backends takes {', '.join(BACKENDS)}, not '{name}'")
    if not (arguments.serve or arguments.dump or arguments.parity):
        parser.error("one of --serve, --dump, --parity")
    return arguments


# BF16 lies in .npy as two opaque bytes, "V2", as fa_bench writes and reads it: NumPy has no such type.
def load_array(path, dtype):
    try:
        array = numpy.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        print(f"peers_torch.py: {path}: {error}", file=sys.stderr)
        sys.exit(2)
    if array.dtype != {"fp16": "float16", "bf16": "V2"}[dtype] or array.ndim != 4:
        shape = f"{array.dtype} {array.shape}"
        print(f"peers_torch.py: {path}: {dtype.upper()} [batch, heads, seq, dim], not {shape}", file=sys.stderr)
        sys.exit(2)
    return torch.from_numpy(array) if dtype == "fp16" else torch.from_numpy(array.view("i2")).view(torch.bfloat16)


def save_array(path, tensor):
    tensor = tensor.cpu()
    array = tensor.view(torch.int16).numpy().view("V2") if tensor.dtype == torch.bfloat16 else tensor.numpy()
    numpy.save(path, array)


class Inputs(peers_inputs.Inputs):
    """Q [batch, heads, seq, dim], K, V [batch, kv_heads, seq_kv, dim] on the device. A shape whose strides are "bshd"
    has the heads of a row side by side, as fa_bench --strides bshd."""

    def __init__(self, shape, seed, where, folder=None):
        for module in (peers_inputs, peers_calls):
            module.torch = torch
        peers_inputs.device, dtype, loaded = where, shape["dtype"], None
        if folder:
            loaded = {name: load_array(pathlib.Path(folder) / f"{name}.npy", dtype).to(where) for name in "qkv"}
            shape = {"causal": shape["causal"], **dict(zip(("batch", "heads", "seq", "dim"), loaded["q"].shape)),
                     "kv_heads": loaded["k"].shape[1], "seq_kv": loaded["k"].shape[2]}
        problem = {"kv_heads": shape["heads"], "seq_kv": shape["seq"], "strides": "packed", **DENSE, **shape}
        problem.update(seq_q=shape["seq"], dim_v=shape["dim"], dtype=dtype, kv_dtype=dtype,
                       causal=bool(shape["causal"]), scale=1 / math.sqrt(shape["dim"]))
        super().__init__(problem, seed, loaded=loaded)


def attention(inputs):
    """What is timed: PyTorch's own causal mask, which is aligned to the top left."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return sdpa(inputs.q, inputs.k, inputs.v, is_causal=inputs.causal, scale=inputs.scale, enable_gqa=inputs.group > 1)


def call_of(backend, inputs):
    """What is timed."""
    if backend not in PACKAGES:
        return lambda: attention(inputs)
    if backend == "fa3" and torch.cuda.get_device_capability() != (9, 0):  # a launch that fails would end the process
        raise RuntimeError("FlashAttention 3 serves sm_90 only")
    return peers_calls.CALLS[backend](inputs)


def captured(call):
    """A graph of so many calls that a replay lasts SAMPLE_US, and how many they are."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(3):
            call()
        end.record()
    torch.cuda.synchronize()
    calls = max(1, min(500, math.ceil(SAMPLE_US / max(begin.elapsed_time(end) * 1000 / 3, 1.0))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph, calls


def burst_of(graphs):
    """Milliseconds of each replay but the first, queued back to back: the gap before the first is left out."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in graphs]
    for graph, mark in zip(graphs, marks):
        graph.replay()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def graph_samples(graph, calls, arguments):
    """Microseconds per call, one number per replay, sorted."""
    samples, spent_ms = [], 0.0
    while spent_ms < arguments.warmup_ms + arguments.max_time * 1000 or len(samples) < 11:
        burst = burst_of([graph] * 9)
        spent_ms += sum(burst) * 9 / 8
        if spent_ms >= arguments.warmup_ms:
            samples += [ms * 1000 / calls for ms in burst]
    return sorted(samples)


def interval_of(samples):
    """The 95 % interval of the median of sorted samples, by their ranks."""
    count = len(samples)
    spread = 0.98 * math.sqrt(count)
    return [samples[max(0, math.floor(count / 2 - spread))], samples[min(count - 1, math.ceil(count / 2 + spread))]]


def ratio_of(blocks):
    """Of blocks A B B A in microseconds per call, A our kernel, B the peer. ratio: how many times as fast ours is."""
    middle = lambda samples: sorted(samples)[len(samples) // 2]
    ratios = sorted((b1 + b2) / (a1 + a2) for a1, b1, b2, a2 in blocks)
    return {"kernel_p50_us": middle([us for a1, _, _, a2 in blocks for us in (a1, a2)]),
            "p50_us": middle([us for _, b1, b2, _ in blocks for us in (b1, b2)]),
            "ratio": middle(ratios), "ratio_ci95": interval_of(ratios), "blocks": len(blocks)}


class Ours:
    """The kernel of a cubin on these inputs, captured. Errors: as peers_cubin."""

    def __init__(self, cubin, inputs):
        self.inputs = inputs
        self.kernel = peers_cubin.Kernel(cubin, inputs)
        self.graph, self.calls = captured(self.kernel)

    def parity(self):
        """Of what the very graph that is timed writes over NaN."""
        self.kernel.output.fill_(math.nan)
        self.graph.replay()
        return self.inputs.parity(self.kernel.output)

    def pair(self, graph, calls, arguments):
        """A peer's graph of `calls` calls against ours, after --warmup-ms of the same alternation, for --max-time and
        11 blocks at least."""
        before, blocks, spent_ms = self.parity(), [], 0.0
        whole_ms = arguments.warmup_ms + arguments.max_time * 1000
        while before["passed"] and (spent_ms < whole_ms or len(blocks) < 11):
            burst = burst_of([self.graph] + 2 * [self.graph, graph, graph, self.graph])
            spent_ms += sum(burst) * 9 / 8
            if spent_ms >= arguments.warmup_ms:
                us = [ms * 1000 / n for ms, n in zip(burst, 2 * [self.calls, calls, calls, self.calls])]
                blocks += [us[:4], us[4:]]
        after = self.parity() if before["passed"] else before
        if not after["passed"]:
            when = " after timing" if blocks else ""
            return {"status": "wrong", "reason": f"our kernel differs from FP64 by {after['max_abs_err']}{when}"}
        return {"status": "pass", "reason": None, **ratio_of(blocks)}


def pairing(shape, inputs):
    """What times a peer's graph against the problem's cubin and gives "paired" of its answer; None without a cubin."""
    if "cubin" not in shape:
        return None
    try:
        return Ours(shape["cubin"], inputs).pair
    except (RuntimeError, ValueError, OSError) as error:
        torch.cuda.synchronize()
        refusal = {"status": "not_run", "reason": str(error).splitlines()[0][:300]}
        return lambda graph, calls, arguments: refusal


def device_record():
    if not torch.cuda.is_available():
        return None
    p = torch.cuda.get_device_properties(0)
    names = ("clock_rate", "memory_clock_rate", "memory_bus_width")
    clock_khz, bus_khz, bus_bits = (getattr(p, name, 0) for name in names)
    return {"backend": "cuda", "name": p.name, "arch": f"sm_{p.major}{p.minor}", "sm_count": p.multi_processor_count,
            "clock_mhz_max": clock_khz // 1000, "memory_bytes": p.total_memory,
            "memory_gbytes_per_s": 2 * bus_khz * 1000 * bus_bits / 8 / 1e9, "l2_bytes": p.L2_cache_size,
            "smem_block_bytes": p.shared_memory_per_block_optin}


def kernel_of(backend):
    return f"flash_attn_{backend[2:]}" if backend in PACKAGES else f"torch_{backend}"


def compiler_of(backend):
    text = f"torch {torch.__version__}, cudnn {torch.backends.cudnn.version()}"
    if backend in peers_calls.carried:
        text += f", {peers_calls.carried[backend]}"
    elif backend in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            text += f", {kernel_of(backend)} {importlib.metadata.version(kernel_of(backend))}"
    return text


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def answer_of(backend, inputs, arguments, pair=None):
    """What scripts/peers.sh is told of a backend: whether it is right, its time, and its pair with the cubin."""
    answer = {"kernel": kernel_of(backend), "status": "pass", "reason": None, "timing": None, "parity": None,
              "provenance": {"compiler": compiler_of(backend)}}
    problem = inputs.problem
    if backend not in PACKAGES and problem["causal"] and problem["seq_q"] != problem["seq_kv"]:
        return {**answer, "status": "infeasible", "reason": "torch aligns a causal mask to the top left"}
    scores = problem["batch"] * problem["heads"] * problem["seq_q"] * problem["seq_kv"]
    if backend == "math" and scores > MATH_SCORES:
        return {**answer, "status": "infeasible", "reason": "the unfused scores would take too much memory"}
    try:
        call = call_of(backend, inputs)
        answer["provenance"]["compiler"] = compiler_of(backend)  # where the package was found
        chosen = BACKENDS[backend] and sdpa_kernel([getattr(SDPBackend, BACKENDS[backend])])
        with chosen or contextlib.nullcontext(), torch.no_grad():
            answer["parity"] = inputs.parity(call())
            if not answer["parity"]["passed"]:
                error = answer["parity"]["max_abs_err"]
                return {**answer, "status": "wrong", "reason": f"differs from FP64 by {error}"}
            graph, calls = captured(call)
            samples = graph_samples(graph, calls, arguments)
    except Exception as error:  # a package refuses with what it likes
        torch.cuda.synchronize()
        return {**answer, "status": "not_run", "reason": (str(error) or repr(error)).splitlines()[0][:300]}
    answer["timing"] = {"p50_us": samples[len(samples) // 2]}
    if pair:
        answer["paired"] = pair(graph, calls, arguments)
    return answer


def same_attention(inputs):
    """PyTorch's result for our meaning of causal: aligned to the bottom right, and 0 in a row that sees no key."""
    seq_q, seq_kv = inputs.q.shape[2], inputs.k.shape[2]
    if not inputs.causal or seq_q == seq_kv:
        return attention(inputs)
    rows = torch.arange(seq_q, device=inputs.q.device)[:, None]
    keys = torch.arange(seq_kv, device=inputs.q.device)[None, :]
    mask = keys <= rows + seq_kv - seq_q
    sdpa = torch.nn.functional.scaled_dot_product_attention
    output = sdpa(inputs.q, inputs.k, inputs.v, attn_mask=mask, scale=inputs.scale, enable_gqa=inputs.group > 1)
    return output.masked_fill(~mask.any(dim=1)[:, None], 0)


def agreement(inputs, ours):
    """Against FP64 by the fixed rule; against PyTorch's result, which is off by as much, by twice that. NaN fails."""
    exact = inputs.parity(ours, some=False)
    theirs = same_attention(inputs).float()
    passed, worst = theirs.shape == ours.shape, None
    if passed:
        error = (ours.to(theirs.device).float() - theirs).abs()
        passed = bool((error <= 2 * inputs.tolerance * (1 + theirs.abs())).all())
        worst = float(error.max())
    return {"passed": exact["passed"] and passed, "exact": exact,
            "torch": {"passed": passed, "max_abs_difference": worst}}


def best_device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def parity(arguments):
    results = []
    for name in arguments.parity:
        folder = pathlib.Path(name)
        record = json.loads((folder / "record.json").read_text())
        inputs = Inputs(record["problem"], arguments.seed, best_device(), name)
        results.append({"dir": name, "device": best_device(), "torch_version": torch.__version__,
                        **agreement(inputs, load_array(folder / "o.npy", inputs.dtype))})
    print(json.dumps(results))
    return 0 if all(result["passed"] for result in results) else 1


def dump(arguments):
    inputs = Inputs(vars(arguments), arguments.seed, best_device())
    folder = pathlib.Path(arguments.dump)
    folder.mkdir(parents=True, exist_ok=True)
    for name in "qkv":
        save_array(folder / f"{name}.npy", getattr(inputs, name))
    return 0


def serve(arguments):
    for line in sys.stdin:
        shape = json.loads(line)
        inputs = Inputs(shape, arguments.seed, "cuda")
        pair = pairing(shape, inputs)
        backends = shape.get("backends", arguments.backends)
        print(json.dumps([answer_of(name, inputs, arguments, pair) for name in backends]), flush=True)
        del inputs, pair
        torch.cuda.empty_cache()
    return 0


def main():
    if arguments.parity:
        return parity(arguments)
    if arguments.dump:
        return dump(arguments)
    if not torch.cuda.is_available():
        not_run("no GPU for PyTorch here")
    return serve(arguments)


if __name__ == "__main__":
    arguments = parse_arguments()
    if os.environ.get("PEERS_SITE"):
        site.addsitedir(os.environ["PEERS_SITE"])  # behind what is installed; heeds its .pth files
    try:
        import numpy
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError as missing:
        absent = [name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None]
        not_run(f"no PyTorch here: python3 has no {' and no '.join(absent)} (python3 -m pip install "
                f"{' '.join(absent)})" if absent else f"no PyTorch here: {missing}")
    sys.exit(main())
