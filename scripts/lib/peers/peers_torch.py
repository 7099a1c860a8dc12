#!/usr/bin/env python3
"""What is timed with PyTorch, and how; and whether fa_bench and PyTorch compute the same (scripts/evidence/parity.sh).

Times are medians over replays of one graph of many calls, queued back to back, so that no launch gap is in a sample.
Exit: 0 pass, 1 wrong result, 2 usage, 4 not run (no PyTorch)."""
import argparse
import datetime
import importlib.util
import json
import math
import pathlib
import sys

import peers_calls
import peers_cubin
import peers_inputs

SAMPLE_US = 1000.0  # one graph lasts at least this long
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
    add("--seed", type=int, default=42)
    add("--dump", metavar="DIR",
        help="write the inputs drawn here to DIR (fa_bench --load), and time nothing; works without a GPU")
    add("--parity", metavar="DIR", nargs="+",
        help="each DIR holds q, k, v, o.npy and record.json of one run of fa_bench --dump: do O, FP64 attention and "
        "PyTorch's agree? exit 1 if not; works without a GPU")
    arguments = parser.parse_args()
    if not (arguments.dump or arguments.parity):
        parser.error("one of --dump, --parity")
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
        peers_inputs.torch = peers_calls.torch = torch
        peers_inputs.device, dtype, loaded = where, shape["dtype"], None
        if folder:
            loaded = {name: load_array(pathlib.Path(folder) / f"{name}.npy", dtype).to(where) for name in "qkv"}
            shape = {"causal": shape["causal"], **dict(zip(("batch", "heads", "seq", "dim"), loaded["q"].shape)),
                     "kv_heads": loaded["k"].shape[1], "seq_kv": loaded["k"].shape[2]}
        problem = {"kv_heads": shape["heads"], "seq_kv": shape["seq"], "strides": "packed", **DENSE, **shape}
        problem.update(seq_q=shape["seq"], dim_v=shape["dim"], dtype=dtype, kv_dtype=dtype,
                       causal=bool(shape["causal"]), scale=1 / math.sqrt(shape["dim"]))
        super().__init__(problem, seed, loaded=loaded)


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
    """The kernel of a cubin on the record's problem, captured. like: take the values of these inputs. Errors: as
    peers_cubin."""

    def __init__(self, cubin, record, seed, like=None):
        self.inputs = peers_inputs.Inputs(record["problem"], seed, like=like)
        self.kernel = peers_cubin.Kernel(cubin, self.inputs, record["launch"])
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


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def same_attention(inputs):
    """PyTorch's result for our meaning of causal: aligned to the bottom right, and 0 in a row that sees no key."""
    seq_q, seq_kv = inputs.q.shape[2], inputs.k.shape[2]
    if not inputs.causal or seq_q == seq_kv:
        return peers_calls.attention(inputs)
    rows = torch.arange(seq_q, device=inputs.q.device)[:, None]
    keys = torch.arange(seq_kv, device=inputs.q.device)[None, :]
    mask = keys <= rows + seq_kv - seq_q
    output = peers_calls.attention(inputs, is_causal=False, attn_mask=mask)
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


if __name__ == "__main__":
    arguments = parse_arguments()
    try:
        import numpy
        import torch
    except ImportError as missing:
        absent = [name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None]
        not_run(f"no PyTorch here: python3 has no {' and no '.join(absent)} (python3 -m pip install "
                f"{' '.join(absent)})" if absent else f"no PyTorch here: {missing}")
    sys.exit(parity(arguments) if arguments.parity else dump(arguments))
