#!/usr/bin/env python3
"""Peers on problems beyond dense forward: lengths, windows, softcap, sinks, another head dimension of V.

For each line of fa_bench options the bench makes the kernel's cubin and its record; the peers and the kernel then run
on the same tensors, are each compared with FP64 attention first, and are timed in blocks A B B A (peers_torch.py).
A peer that is wrong, refuses or is not here says so in its row. Rows: one JSON object a line.
Exit: 0, 1 our kernel failed, 2 usage, 4 not run (no PyTorch, no GPU)."""
import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import shlex
import site
import subprocess
import sys
import tempfile

import peers_cubin
import peers_torch

FEATURES = {"varlen": 1, "window": 2, "softcap": 0x10, "sink": 0x20, "dim_v": 0x200}
PEERS = ("fa4", "cudnn", "fa3")
ROWS, HEADS = 48, 4  # compared with FP64, of each of so many heads and of every sequence's ends


def features_of(problem):
    """The bits of FA_FEATURES that a record's problem asks for. ValueError: one that no peer here is asked for."""
    for name in ("chunk", "page_size"):
        if problem[name] is not None:
            raise ValueError(f"{name} is not done here")
    if problem["alibi"] or problem["bias"] or problem["mask"] != "none" or problem["v_in_k"]:
        raise ValueError("alibi, bias, mask and v-in-k are not done here")
    window = problem["window"]
    asked = {"varlen": problem["lengths"] is not None,
             "window": window is not None and (window[0] >= 0 or (window[1] >= 0 and not problem["causal"])),
             "softcap": problem["softcap"] is not None, "sink": problem["sinks"],
             "dim_v": problem["dim_v"] != problem["dim"]}
    return sum(FEATURES[name] for name, on in asked.items() if on)


def starts_of(lengths):
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts


def bounds_of(problem):
    """(left, right) of FlashAttention's window_size: inclusive as ours, -1 open; causal closes the right."""
    left, right = problem["window"] or (-1, -1)
    return left, 0 if problem["causal"] else right


def visible(problem, rows, seq_q, seq_kv, arange):
    """A mask [rows, keys] of what rows of a sequence see; `arange` makes a tensor on the device."""
    pos, keys = rows[:, None] + seq_kv - seq_q, arange(seq_kv)[None, :]
    left, right = bounds_of(problem)
    seen = keys >= 0
    if left >= 0:
        seen = seen & (keys >= pos - left)
    if right >= 0:
        seen = seen & (keys <= pos + right)
    return seen & (pos > -(10**9))


class Inputs:
    """Tensors of a problem: [batch, rows, heads, dim] in memory, seen as [batch, heads, rows, dim]; with lengths a
    batch of 1 holds all rows. What peers_torch.Ours asks of its inputs."""

    def __init__(self, problem, seed):
        self.problem, self.dtype, self.causal = problem, problem["dtype"], problem["causal"]
        self.scale, self.tolerance = problem["scale"], peers_torch.TOLERANCE[problem["dtype"]]
        self.features, lengths = features_of(problem), problem["lengths"]
        self.batch, self.heads, self.kv_heads = problem["batch"], problem["heads"], problem["kv_heads"]
        self.q_lengths = lengths["q"] if lengths else [problem["seq_q"]] * self.batch
        self.kv_lengths = lengths["kv"] if lengths else [problem["seq_kv"]] * self.batch
        self.q_starts, self.kv_starts = starts_of(self.q_lengths), starts_of(self.kv_lengths)
        generator = torch.Generator(device="cuda").manual_seed(seed)
        of = {"fp16": torch.float16, "bf16": torch.bfloat16}[self.dtype]
        stored = 1 if lengths else self.batch

        def draw(heads, rows, dim):
            size = (stored, rows // stored, heads, dim)
            return torch.randn(size, generator=generator, device="cuda", dtype=of).transpose(1, 2)

        self.q = draw(self.heads, self.q_starts[-1], problem["dim"])
        self.k = draw(self.kv_heads, self.kv_starts[-1], problem["dim"])
        self.v = draw(self.kv_heads, self.kv_starts[-1], problem["dim_v"])
        self.sinks = None
        if problem["sinks"]:
            noise = torch.randn(self.heads, generator=generator, device="cuda")
            self.sinks = 4.0 + noise
        ints = lambda values: torch.tensor(values, dtype=torch.int32, device="cuda")
        self.cu_q, self.cu_kv = ints(self.q_starts), ints(self.kv_starts)
        self.more = {"softcap": problem["softcap"] or 0.0}
        self.more["window_left"], self.more["window_right"] = bounds_of(problem)
        if self.sinks is not None:
            self.more["sinks"] = self.sinks
        if lengths:
            self.more.update(batch=self.batch, seq_q=max(self.q_lengths), seq_kv=max(self.kv_lengths),
                             start_q=self.cu_q, start_kv=self.cu_kv, used_q=ints(self.q_lengths),
                             used_kv=ints(self.kv_lengths))

    def rows_of(self, tensor, sequence, starts):
        """A sequence's rows: [heads, rows, dim]."""
        if tensor.shape[0] == 1 and self.batch > 1:
            return tensor[0, :, starts[sequence]:starts[sequence + 1]]
        return tensor[0 if self.problem["lengths"] else sequence]

    def exact(self, sequence, head, rows):
        """FP64 attention of some rows; a row that sees nothing is 0."""
        q = self.rows_of(self.q, sequence, self.q_starts)[head, rows].double()
        k = self.rows_of(self.k, sequence, self.kv_starts)[head // (self.heads // self.kv_heads)].double()
        v = self.rows_of(self.v, sequence, self.kv_starts)[head // (self.heads // self.kv_heads)].double()
        scores = q @ k.T * self.scale
        cap = self.problem["softcap"]
        if cap:
            scores = cap * torch.tanh(scores / cap)
        arange = lambda count: torch.arange(count, device=rows.device)
        seen = visible(self.problem, rows, self.q_lengths[sequence], self.kv_lengths[sequence], arange)
        scores = scores.masked_fill(~seen, -math.inf)
        if self.sinks is not None:
            sink = self.sinks[head].double().expand(len(rows), 1)
            return torch.softmax(torch.cat([scores, sink], dim=1), dim=1)[:, :-1] @ v
        return torch.softmax(scores, dim=1).nan_to_num(0.0) @ v

    def parity(self, output, rows_per_head=None):
        """|O - exact| within the type's tolerance, on some rows of some heads of every sequence. NaN fails."""
        generator, worst, ok, checked = torch.Generator().manual_seed(1), 0.0, True, 0
        heads = torch.randperm(self.heads, generator=generator)[:HEADS].tolist()
        for sequence, count in enumerate(self.q_lengths):
            if count == 0:
                continue
            drawn = torch.randint(count, (ROWS,), generator=generator).tolist()
            rows = torch.tensor(sorted({0, count - 1, *drawn}), device="cuda")
            for head in heads:
                exact = self.exact(sequence, head, rows)
                got = self.rows_of(output, sequence, self.q_starts)[head, rows].double()
                error = (got - exact).abs()
                ok = ok and bool((error <= self.tolerance * (1 + exact.abs())).all())
                worst = max(worst, float(error.nan_to_num(math.inf).max()))
                checked += len(rows)
        return {"passed": ok, "reference": "torch_fp64", "rows_checked": checked,
                "max_abs_err": worst if math.isfinite(worst) else None}

    def tokens(self, tensor):
        """[rows, heads, dim] where there are lengths, else [batch, rows, heads, dim]."""
        tensor = tensor.transpose(1, 2)
        return tensor[0] if self.problem["lengths"] else tensor

    def seen(self, output):
        """The way back, for an output."""
        return (output[None] if self.problem["lengths"] else output).transpose(1, 2)


def flash(package, inputs, sinks_name):
    """A call of FlashAttention 3 or 4: the same window and alignment as ours."""
    problem = inputs.problem
    left, right = bounds_of(problem)
    options = {"softmax_scale": inputs.scale, "causal": problem["causal"], "softcap": problem["softcap"] or 0.0}
    if problem["window"] is not None:  # their causal closes the right
        opened = [bound if bound >= 0 else None for bound in (left, right)]
        options["window_size"] = tuple(opened) if sinks_name else (left, right)
        options["causal"] = problem["causal"] and left < 0
    if inputs.sinks is not None:
        if not sinks_name:
            raise RuntimeError("takes no sinks")
        options[sinks_name] = inputs.sinks.to(inputs.q.dtype)
    if options["softcap"] == 0.0:
        del options["softcap"]
    tensors = [inputs.tokens(x) for x in (inputs.q, inputs.k, inputs.v)]
    if problem["lengths"]:
        options.update(cu_seqlens_q=inputs.cu_q, cu_seqlens_k=inputs.cu_kv, max_seqlen_q=max(inputs.q_lengths),
                       max_seqlen_k=max(inputs.kv_lengths))
        function = package.flash_attn_varlen_func
    else:
        function = package.flash_attn_func

    def call():
        output = function(*tensors, **options)
        return inputs.seen(output[0] if isinstance(output, tuple) else output)
    return call


def fa4(inputs):
    import flash_attn.cute.interface as package
    return flash(package, inputs, "learnable_sink")


def fa3(inputs):
    import flash_attn_interface as package
    return flash(package, inputs, None)


def cudnn(inputs):
    """cuDNN's graph by its frontend. Its left bound counts the row's own key: ours and one more."""
    import cudnn as frontend
    problem, types = inputs.problem, {"fp16": frontend.data_type.HALF, "bf16": frontend.data_type.BFLOAT16}
    if problem["softcap"]:
        raise RuntimeError("no softcap in its fused attention for sm_90")
    handle = frontend.create_handle()
    graph = frontend.pygraph(io_data_type=types[problem["dtype"]], intermediate_data_type=frontend.data_type.FLOAT,
                             compute_data_type=frontend.data_type.FLOAT, handle=handle)
    left, right = bounds_of(problem)
    options, feed = {"attn_scale": inputs.scale, "generate_stats": False}, {}
    if left >= 0 or right >= 0:
        options["diagonal_alignment"] = frontend.diagonal_alignment.BOTTOM_RIGHT
    if left >= 0:
        options["diagonal_band_left_bound"] = left + 1
    if right >= 0:
        options["diagonal_band_right_bound"] = right

    def tensor(name, like, rows, ragged):
        heads, dim = like.shape[1], like.shape[3]
        size = [inputs.batch, heads, rows, dim]
        made = graph.tensor(name=name, dim=size, stride=[rows * heads * dim, dim, heads * dim, 1],
                            data_type=types[problem["dtype"]])
        if ragged is not None:
            offsets = graph.tensor(name=f"{name}_offsets", dim=[inputs.batch + 1, 1, 1, 1], stride=[1, 1, 1, 1],
                                   data_type=frontend.data_type.INT64)
            made.set_ragged_offset(offsets)
            feed[offsets] = (ragged.long() * heads * dim).reshape(-1, 1, 1, 1).contiguous()
        return made

    lengths = problem["lengths"]
    ragged_q, ragged_kv = (inputs.cu_q, inputs.cu_kv) if lengths else (None, None)
    rows_q, rows_kv = max(inputs.q_lengths), max(inputs.kv_lengths)
    q, k = tensor("q", inputs.q, rows_q, ragged_q), tensor("k", inputs.k, rows_kv, ragged_kv)
    v = tensor("v", inputs.v, rows_kv, ragged_kv)
    feed.update({q: inputs.q, k: inputs.k, v: inputs.v})
    if lengths:
        options["use_padding_mask"] = True
        for name, values in (("seq_len_q", inputs.q_lengths), ("seq_len_kv", inputs.kv_lengths)):
            options[name] = graph.tensor(name=name, dim=[inputs.batch, 1, 1, 1], stride=[1, 1, 1, 1],
                                         data_type=frontend.data_type.INT32)
            feed[options[name]] = torch.tensor(values, dtype=torch.int32, device="cuda").reshape(-1, 1, 1, 1)
    if inputs.sinks is not None:
        options["sink_token"] = graph.tensor(name="sink", dim=[1, inputs.heads, 1, 1], stride=[inputs.heads, 1, 1, 1],
                                             data_type=frontend.data_type.FLOAT)
        feed[options["sink_token"]] = inputs.sinks.reshape(1, -1, 1, 1).contiguous()
    o, _ = graph.sdpa(name="sdpa", q=q, k=k, v=v, **options)
    output = peers_cubin.output_like(torch, inputs)
    heads, dim = output.shape[1], output.shape[3]
    o.set_output(True).set_dim([inputs.batch, heads, rows_q, dim])
    o.set_stride([rows_q * heads * dim, dim, heads * dim, 1])
    if lengths:
        offsets = graph.tensor(name="o_offsets", dim=[inputs.batch + 1, 1, 1, 1], stride=[1, 1, 1, 1],
                               data_type=frontend.data_type.INT64)
        o.set_ragged_offset(offsets)
        feed[offsets] = (inputs.cu_q.long() * heads * dim).reshape(-1, 1, 1, 1).contiguous()
    feed[o] = output
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([frontend.heur_mode.A, frontend.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(graph.get_workspace_size(), 1), dtype=torch.uint8, device="cuda")

    def call():
        frontend.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(feed, workspace, handle=handle)
        return output
    return call


def version_of(peer):
    if peer == "cudnn":
        import cudnn as frontend
        return f"cuDNN {frontend.backend_version()}, frontend {frontend.__version__}"
    return f"{peer} {importlib.metadata.version({'fa4': 'flash-attn-4', 'fa3': 'flash_attn_3'}[peer])}"


def beside(peer, inputs, ours, arguments):
    """A peer's row: its version, whether it is right, and the ratio of its time to ours."""
    row = {"peer": peer, "version": None, "status": "pass", "reason": None}
    try:
        call = {"fa4": fa4, "fa3": fa3, "cudnn": cudnn}[peer](inputs)
        row["version"] = version_of(peer)
        with torch.no_grad():
            row["parity"] = inputs.parity(call())
            if not row["parity"]["passed"]:
                return {**row, "status": "wrong", "reason": f"differs from FP64 by {row['parity']['max_abs_err']}"}
            graph, calls = peers_torch.captured(call)
            return {**row, **ours.pair(graph, calls, arguments)}
    except Exception as error:  # a package refuses with what it likes
        torch.cuda.synchronize()
        return {**row, "status": "not_run", "reason": (str(error) or repr(error)).splitlines()[0][:300]}


def bench_record(line, arguments, folder):
    """The record of our kernel on a problem, checked on the GPU, and the cubin."""
    cubin, record = folder / "kernel.cubin", folder / "record.json"
    command = [*shlex.split(arguments.bench), "--kernel", arguments.kernel, *shlex.split(line), "--device", "cuda",
               "--strides", "bshd", "--seeds", str(arguments.seeds), "--timing", "none", "--no-bound", "--quiet",
               "--cubin", str(cubin), "--json", str(record)]
    record.unlink(missing_ok=True)
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not record.exists():
        sys.exit(f"peers_features.py: no record of: {shlex.join(command)}")
    return json.loads(record.read_text()), cubin


def row_of(line, arguments, folder):
    record, cubin = bench_record(line, arguments, folder)
    row = {"options": line, "kernel": record["kernel"], "variant": record["variant"], "config": record["config"],
           "code_sha256": record["provenance"]["code_sha256"], "git": record["provenance"]["git"],
           "problem": record["problem"], "device": peers_torch.device_record(), "status": record["status"],
           "reason": record["reason"], "time": peers_torch.now(), "peers": []}
    if record["status"] != "pass":
        return row
    try:
        inputs = Inputs(record["problem"], arguments.seed)
        ours = peers_torch.Ours(str(cubin), inputs)
    except (ValueError, RuntimeError, OSError) as error:
        return {**row, "status": "not_run", "reason": str(error)}
    row["parity"] = ours.parity()
    if not row["parity"]["passed"]:
        return {**row, "status": "wrong", "reason": f"differs from FP64 by {row['parity']['max_abs_err']}"}
    samples = peers_torch.graph_samples(ours.graph, ours.calls, arguments)
    row["p50_us"] = samples[len(samples) // 2]
    row["tflops"] = record["problem"]["flop"] / row["p50_us"] * 1e-6
    row["peers"] = [beside(peer, inputs, ours, arguments) for peer in arguments.peers]
    ratios = [peer["ratio"] for peer in row["peers"] if "ratio" in peer]
    row["ratio"] = min(ratios) if ratios else None
    return row


def text_of(row):
    words = [f"{row['options']}: {row['status']}"]
    if row["reason"]:
        words.append(row["reason"])
    if "tflops" in row:
        words.append(f"{row['p50_us']:.1f} us {row['tflops']:.0f} TFLOP/s")
    for peer in row["peers"]:
        words.append(f"{peer['peer']} {peer['ratio']:.3f}" if "ratio" in peer
                     else f"{peer['peer']} {peer['status']}: {peer['reason']}")
    return "; ".join(words)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--problems", default=str(pathlib.Path(__file__).parent / "features.txt"), help="lines of fa_bench options")
    add("--kernel", default="wgmma")
    add("--peers", default=",".join(PEERS), help="comma-separated (default: %(default)s)")
    add("--bench", default="./fa_bench")
    add("--only", default="", help="only lines that contain this")
    add("--max-time", type=float, default=0.15, help="seconds of sampling per pair (default: %(default)s)")
    add("--warmup-ms", type=float, default=150)
    add("--seeds", type=int, default=1)
    add("--seed", type=int, default=42)
    add("--out", required=True, metavar="FILE", help="rows are added, those of the same options replaced")
    arguments = parser.parse_args()
    arguments.peers = arguments.peers.split(",")
    for peer in arguments.peers:
        if peer not in PEERS:
            parser.error(f"--peers takes {', '.join(PEERS)}, not '{peer}'")
    return arguments


def main():
    lines = [line.strip() for line in pathlib.Path(arguments.problems).read_text().splitlines()]
    lines = [line for line in lines if line and not line.startswith("#") and arguments.only in line]
    out, rows, failed = pathlib.Path(arguments.out), {}, 0
    if out.exists():
        rows = {row["options"]: row for row in map(json.loads, out.read_text().splitlines())}
    with tempfile.TemporaryDirectory() as folder:
        for line in lines:
            row = row_of(line, arguments, pathlib.Path(folder))
            rows[line] = row
            failed += row["status"] not in ("pass", "infeasible")
            out.with_suffix(".new").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
            out.with_suffix(".new").replace(out)
            print(text_of(row), flush=True)
            torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == "__main__":
    arguments = parse_arguments()
    if os.environ.get("PEERS_SITE"):
        site.addsitedir(os.environ["PEERS_SITE"])  # behind what is installed; heeds its .pth files
    try:
        import torch
    except ImportError as missing:
        peers_torch.not_run(f"no PyTorch here: {missing}")
    if not torch.cuda.is_available():
        peers_torch.not_run("no GPU for PyTorch here")
    peers_torch.torch = torch
    sys.exit(main())
