#!/usr/bin/env python3
"""Peers on problems beyond dense forward: lengths, windows, softcap, sinks, another head dimension of V, pages, MLA,
FP8, gradients.

For each line of fa_bench options the bench makes the kernel's cubin and its record; the peers and the kernel then run
on the same tensors (peers_inputs.py, peers_calls.py), are each compared with FP64 first, and are timed in blocks A B B
A (peers_torch.py). A peer that is wrong, refuses or is not here says so in its row. Two peers are ours on another
problem: "contiguous", the same without pages, and "16bit", the same values without FP8. A line may name its --kernel.
The work is a process of its own: where a peer takes it along, or needs longer than --limit, its row says so and
another process goes on behind it. Rows: one JSON object a line.
Exit: 0, 1 our kernel failed, 2 usage, 4 not run (no PyTorch, no GPU), 6 a process that ends before it begins."""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import site
import subprocess
import sys
import tempfile
import time

import peers_calls
import peers_inputs
import peers_torch

PEERS = (*peers_calls.CALLS, "contiguous", "16bit")


def note(number, peer, reason=None):
    """What this process is at, for the one behind it."""
    pathlib.Path(arguments.state).write_text(json.dumps([number, peer, reason]))


def begin(number, peer):
    """RuntimeError where this has ended a process; else it may take --limit seconds."""
    for *at, reason in json.loads(arguments.lost):
        if at == [number, peer]:
            raise RuntimeError(reason)
    note(number, peer)
    signal.alarm(arguments.limit)


def refusal(number, peer, error):
    """The reason of a row. Where a kernel has failed all that follow would: another process goes on."""
    reason = (str(error) or repr(error)).splitlines()[0][:300]
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        note(number, peer, reason)
        os._exit(signal.SIGABRT)
    return reason


def timed(make, *given):
    """A dict and how long it took, compilers included."""
    began = time.monotonic()
    return {**make(*given), "seconds": round(time.monotonic() - began, 1)}


def peers_of(problem):
    """Those that serve its kind of problem somewhere; the others are not asked."""
    if problem["op"] == "backward":
        return "fa4", "cudnn", "fa3", "fa2"
    if problem["dtype"] == "e4m3":
        return "cudnn", "fa3", "flashinfer", "fmha_v2", "16bit"
    wide = ("16bit",) if problem["kv_dtype"] == "e4m3" else ()
    if problem["page_size"] is None:
        return "fa4", "cudnn", "fa3", *wide
    peers = ("fa3", "flashinfer", "flash_mla") if problem["v_in_k"] else ("fa4", "cudnn", "fa3", "flashinfer")
    return *peers, "contiguous", *wide


def expanded(line):
    """A line of a list as problems: {A|B} is one of them each."""
    found = re.search(r"[{]([^{}]*)[}]", line)
    if not found:
        return [" ".join(line.split())]
    return [one for word in found[1].split("|") for one in expanded(line[:found.start()] + word + line[found.end():])]


def lines_of():
    text = pathlib.Path(arguments.problems).read_text().splitlines()
    lines = [one for line in text if line.strip() and not line.startswith("#") for one in expanded(line)]
    return [line for line in lines if arguments.only in line]


def without(line, *names):
    """A line without options that have a value."""
    words = shlex.split(line)
    at = [i for i, word in enumerate(words) if word in names]
    return shlex.join(word for i, word in enumerate(words) if i not in at and i - 1 not in at)


def ours_on(line, inputs, arguments, folder):
    """Our kernel for another problem, on the values of these inputs, and what it is."""
    record, cubin = bench_record(line, arguments, folder)
    if record["status"] != "pass":
        raise RuntimeError(f"{record['kernel']} {record['status']}: {record['reason']}")
    ours = peers_torch.Ours(str(cubin), peers_inputs.Inputs(record["problem"], arguments.seed, like=inputs))
    config = record["config"]
    return ours, f"{record['variant'] or record['kernel']} {config['m']}x{config['n']}"


def made_by(peer, line, inputs, arguments, folder):
    """A peer's version, its verdict, its graph and how many calls that holds."""
    if peer in peers_calls.CALLS:
        made = peers_calls.CALLS[peer](inputs)
        call, finish = made if isinstance(made, tuple) else (made, lambda output: output)
        return peers_calls.version_of(peer), inputs.parity(finish(call())), lambda: peers_torch.captured(call)
    line = without(line, "--page-size", "--page-layout") if peer == "contiguous" else \
        without(line, "--kv-dtype") + " --dtype " + ("bf16" if inputs.dtype == "e4m3" else inputs.dtype)
    ours, version = ours_on(line, inputs, arguments, folder)
    return version, ours.parity(), lambda: (ours.graph, ours.calls)


def beside(peer, number, line, inputs, ours, arguments, folder):
    """A peer's row: its version, whether it is right, and the ratio of its time to ours; of a wrong one apart."""
    row = {"peer": peer, "version": None, "status": "pass", "reason": None}
    try:
        begin(number, peer)
        with torch.no_grad():
            row["version"], row["parity"], capture = made_by(peer, line, inputs, arguments, folder)
            if not row["parity"]["passed"]:
                row.update(status="wrong", reason=f"differs from FP64 by {row['parity']['max_abs_err']}")
            if row["parity"]["max_abs_err"] is None:
                return row
            pair = ours.pair(*capture(), arguments)
            return {**row, **pair} if row["status"] == "pass" else {**row, "wrong_ratio": pair.get("ratio")}
    except Exception as error:  # a package refuses with what it likes
        reason = refusal(number, peer, error)
        return row if row["status"] == "wrong" else {**row, "status": "not_run", "reason": reason}


def bench_record(line, arguments, folder):
    """The record of our kernel on a problem, checked on the GPU, and the cubin."""
    cubin, record = folder / "kernel.cubin", folder / "record.json"
    kernel = [] if "--kernel" in line else ["--kernel", arguments.kernel]
    command = [*shlex.split(arguments.bench), *kernel, *shlex.split(line), "--device", "cuda", "--strides", "bshd",
               "--seeds", "1", "--timing", "none", "--no-bound", "--quiet",
               "--cubin", str(cubin), "--json", str(record)]
    if "backward" in line:  # drawn rows: checking every element is the gate's work
        command += ["--check", "cpu"]
    record.unlink(missing_ok=True)
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not record.exists():
        sys.exit(f"peers_features.py: no record of: {shlex.join(command)}")
    return json.loads(record.read_text()), cubin


def row_of(number, line, arguments, folder):
    began = time.monotonic()
    record, cubin = bench_record(line, arguments, folder)
    record_s = time.monotonic() - began
    problem = record["problem"]
    row = {"options": line, "kernel": record["kernel"], "variant": record["variant"], "config": record["config"],
           "code_sha256": record["provenance"]["code_sha256"], "git": record["provenance"]["git"],
           "record_s": round(record_s, 1), "problem": problem, "device": peers_torch.device_record(),
           "status": record["status"],
           "reason": record["reason"], "time": peers_torch.now(), "peers": []}
    if record["status"] != "pass":
        return row
    try:
        begin(number, "ours")
        inputs = peers_inputs.Inputs(problem, arguments.seed)
        ours = peers_torch.Ours(str(cubin), inputs)
    except (ValueError, RuntimeError, OSError) as error:
        return {**row, "status": "not_run", "reason": refusal(number, "ours", error)}
    row["parity"] = ours.parity()
    if not row["parity"]["passed"]:
        return {**row, "status": "wrong", "reason": f"differs from FP64 by {row['parity']['max_abs_err']}"}
    samples = peers_torch.graph_samples(ours.graph, ours.calls, arguments)
    row["p50_us"] = samples[len(samples) // 2]
    row["tflops"] = problem["flop"] / row["p50_us"] * 1e-6
    row["gbytes_per_s"] = problem["bytes"] / row["p50_us"] * 1e-3
    row["peers"] = [timed(beside, peer, number, line, inputs, ours, arguments, folder) for peer in peers_of(problem)
                    if peer in (arguments.peers.split(",") if arguments.peers else PEERS)]
    ratios = [peer["ratio"] for peer in row["peers"] if "ratio" in peer and peer["peer"] in peers_calls.CALLS]
    row["ratio"] = min(ratios) if ratios else None
    return row


def text_of(row):
    words = [f"{row['options']}: {row['status']}, {row['seconds']:.0f} s"]
    if row["reason"]:
        words.append(row["reason"])
    if "tflops" in row:
        words.append(f"{row['p50_us']:.1f} us {row['tflops']:.0f} TFLOP/s {row['gbytes_per_s']:.0f} GB/s")
    for peer in row["peers"]:
        words.append(f"{peer['peer']} {peer['ratio']:.3f}" if "ratio" in peer
                     else f"{peer['peer']} {peer['status']}: {peer['reason']}")
    return "; ".join(words)


def parse_arguments():
    """The options of features.sh, which has checked them; --state, --start and --lost: of one process for the next."""
    parser = argparse.ArgumentParser()
    for name, default in (("bench", "./fa_bench"), ("kernel", "wgmma"), ("problems", ""), ("only", ""), ("peers", ""),
                          ("max-time", 0.15), ("limit", 300), ("out", ""), ("state", ""), ("start", 0), ("lost", "[]")):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.set_defaults(seed=42, warmup_ms=150)
    return parser.parse_args()


def work():
    lines, out, rows = lines_of(), pathlib.Path(arguments.out), {}
    if out.exists():
        rows = {row["options"]: row for row in map(json.loads, out.read_text().splitlines())}
    with tempfile.TemporaryDirectory() as folder:
        for number, line in list(enumerate(lines))[arguments.start:]:
            row = rows[line] = timed(row_of, number, line, arguments, pathlib.Path(folder))
            signal.alarm(0)
            out.with_suffix(".new").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
            out.with_suffix(".new").replace(out)
            print(text_of(row), flush=True)
            torch.cuda.empty_cache()
    return 0 if all(rows[line]["status"] in ("pass", "infeasible") for line in lines) else 1


def watch():
    """One process behind the other, until one comes to its end."""
    lost, number = [], 0
    with tempfile.NamedTemporaryFile("r") as file:
        while True:
            code = subprocess.call([sys.executable, *sys.argv, "--state", file.name, "--start", str(number),
                                    "--lost", json.dumps(lost)])
            file.seek(0)
            said = file.read()
            if code in (0, 1, 2, 4) or not said:
                return code if code in (0, 1, 2, 4) else 6
            number, peer, reason = json.loads(said)
            late = f"took longer than {arguments.limit} s" if code == -signal.SIGALRM else f"ended the process: {code}"
            if [number, peer] in [at for *at, _ in lost]:
                return 6
            lost.append([number, peer, reason or late])


if __name__ == "__main__":
    arguments = parse_arguments()
    if not arguments.out:
        print(*lines_of(), sep="\n")
        sys.exit(0)
    if not arguments.state:
        sys.exit(watch())
    if os.environ.get("PEERS_SITE"):
        site.addsitedir(os.environ["PEERS_SITE"])  # behind what is installed; heeds its .pth files
    try:
        import torch
    except ImportError as missing:
        peers_torch.not_run(f"no PyTorch here: {missing}")
    if not torch.cuda.is_available():
        peers_torch.not_run("no GPU for PyTorch here")
    for module in (peers_torch, peers_inputs, peers_calls):
        module.torch = torch
    sys.exit(work())
