#!/usr/bin/env python3
"""Our kernel and its peers on problems, a line of fa_bench options each (scripts/peers.sh).

The bench makes the kernel's cubin and its record; the peers and the kernel then run on the same tensors
(peers_inputs.py, peers_calls.py), are each compared with FP64 first, and are timed alone and in blocks A B B A
(peers_torch.py). A peer that is wrong, refuses or is not here says so in its row. Three peers are ours on another
problem: "contiguous", the same without pages, "dense", without lengths where all are equal, and "16bit", the same
values without FP8. A library is timed and paired by the bench. A line may name its --kernel.
The work is a process of its own: where a peer takes it along, or needs longer than --limit, its row says so and
another process goes on behind it. Rows: one JSON object a line.
Exit: 0, 1 our kernel failed, 2 usage, 4 not run (no PyTorch, no GPU), 6 no record, or a process that ends before it
begins."""
import argparse
import json
import math
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

OURS = ("contiguous", "dense", "16bit")
PAIR = ("ratio", "ratio_ci95", "blocks")
NO_RECORD = 5  # the exit of a process whose bench wrote none


def end(code, why):
    print(f"peers.sh: {why}", file=sys.stderr)
    sys.exit(code)


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


def middle_of(samples):
    return samples[len(samples) // 2]


def timed(make, *given):
    """A dict and how long it took, compilers included."""
    began = time.monotonic()
    return {**make(*given), "seconds": round(time.monotonic() - began, 1)}


def peers_of(problem, named):
    """Those that serve its kind of problem somewhere; of the others none is asked. named: the line names a kernel."""
    if peers_inputs.features_of(problem) == 0:
        return "fa4", "cudnn", "fa3", "fa2", "efficient", "math"
    if problem["op"] == "backward":
        return "fa4", "cudnn", "fa3", "fa2"
    if problem["dtype"] == "e4m3":
        return "cudnn", "fa3", "flashinfer", "fmha_v2", "16bit"
    wide = ("16bit",) if problem["kv_dtype"] == "e4m3" else ()
    if problem["page_size"] is None:
        lengths = problem["lengths"] or {"q": ()}
        even = ("dense",) if {len(set(lengths[name])) for name in lengths} == {1} else ()
        by_name = ("flashinfer",) if "flashinfer" in arguments.peers else () # compiles for minutes
        return "fa4", "cudnn", "fa3", *(("fa2",) if named else ()), *by_name, *even, *wide
    peers = ("fa3", "flashinfer", "flash_mla") if problem["v_in_k"] else ("fa4", "cudnn", "fa3", "flashinfer")
    return *peers, "contiguous", *wide


def expanded(line):
    """A line of a list as problems: {A|B} is one of them each."""
    found = re.search(r"[{]([^{}]*)[}]", line)
    if not found:
        return [" ".join(line.split())]
    return [one for word in found[1].split("|") for one in expanded(line[:found.start()] + word + line[found.end():])]


def lines_of():
    text = pathlib.Path(arguments.problems).read_text(errors="replace").splitlines()
    lines = [one for line in text if line.strip() and not line.startswith("#") for one in expanded(line)]
    for line in lines:
        if not re.fullmatch(r"--[ -~]+", line):
            end(2, f"--problems takes lines of problem options, not '{line[:60]}'")
    return [" ".join(f"{line} {arguments.more}".split()) for line in lines if arguments.only in line]


def without(line, *names):
    """A line without options that have a value."""
    words = shlex.split(line)
    at = [i for i, word in enumerate(words) if word in names]
    return shlex.join(word for i, word in enumerate(words) if i not in at and i - 1 not in at)


def ours_on(line, inputs, arguments, folder):
    """Our kernel for another problem, on the values of these inputs, and what it is."""
    record, cubin = bench_record("", line, folder)
    if record["status"] != "pass":
        raise RuntimeError(f"{record['kernel']} {record['status']}: {record['reason']}")
    ours = peers_torch.Ours(cubin, record, arguments.seed, like=inputs)
    config = record["config"]
    return ours, f"{record['variant'] or record['kernel']} {config['m']}x{config['n']}"


def made_by(peer, line, inputs, arguments, folder):
    """A peer's version, its verdict, its graph and how many calls that holds."""
    if peer in peers_calls.CALLS:
        call = peers_calls.CALLS[peer](inputs)
        return peers_calls.version_of(peer), inputs.parity(call()), lambda: peers_torch.captured(call)
    sizes = " --batch {batch} --seq {seq_q} --seq-kv {seq_kv}".format_map(inputs.problem)
    other = {"contiguous": without(line, "--page-size", "--page-layout"), "dense": without(line, "--lengths") + sizes,
             "16bit": without(line, "--kv-dtype") + f" --dtype {'bf16' if inputs.dtype == 'e4m3' else inputs.dtype}"}
    ours, version = ours_on(other[peer], inputs, arguments, folder)
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
            graph, calls = capture()
            pair = {} if arguments.no_pairs else ours.pair(graph, calls, arguments)
            if row["status"] != "pass":
                return {**row, "wrong_ratio": pair.get("ratio")}
            return {**row, "solo_us": middle_of(peers_torch.graph_samples(graph, calls, arguments)), **pair}
    except Exception as error:  # a package refuses with what it likes
        reason = refusal(number, peer, error)
        return row if row["status"] == "wrong" else {**row, "status": "not_run", "reason": reason}


def bench_run(words, folder):
    """The record of a run of the bench on the GPU."""
    record = folder / "record.json"
    command = [*shlex.split(arguments.bench), *words, "--device", "cuda", "--quiet", "--json", str(record)]
    command += [] if "--strides" in words else ["--strides", "bshd"]
    record.unlink(missing_ok=True)
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not record.exists():
        end(NO_RECORD, f"no record of: {shlex.join(command)}")
    return json.loads(record.read_text())


def bench_record(kernel, line, folder):
    """The record of our kernel on a problem, checked on the GPU, and the cubin."""
    cubin, words = folder / "kernel.cubin", shlex.split(line)
    if "--kernel" not in words:
        words = ["--kernel", kernel, *words]
    if "backward" in words:  # drawn rows: checking every element is the gate's work
        words += ["--check", "cpu"]
    return bench_run([*words, "--seeds", "1", "--timing", "none", "--no-bound", "--cubin", str(cubin)], folder), cubin


def name_of(library):
    return pathlib.Path(library).name.removesuffix(".so")


def library_row(library, kernel, line, arguments, folder):
    """A library's row: the bench times it alone and beside our kernel. Only our own wrong result is "wrong" there."""
    of_file = "/" in library or library.endswith(".so")
    words = [*shlex.split(line), "--seeds", "1", "--check", "cpu", "--timing", "graph",
             "--warmup-ms", str(arguments.warmup_ms), "--max-time", str(arguments.max_time)]
    alone = bench_run(["--library" if of_file else "--kernel", library, *words], folder)
    about = alone.get("library") or {}
    row = {"peer": name_of(library), "version": alone["provenance"].get("compiler") or about.get("version"),
           "status": alone["status"], "reason": alone["reason"], "sha256": about.get("sha256")}
    if row["status"] != "pass":
        return row
    row["solo_us"] = alone["timing"]["p50_us"]
    if arguments.no_pairs:
        return row
    pair = bench_run(["--kernel", kernel, "--vs", f"library:{library}" if of_file else library, *words], folder)
    if pair["check"] and pair["check"]["passed"] is False:
        return {**row, "status": "wrong", "reason": f"our kernel: {pair['reason']}"}
    if not (pair["vs"] and pair["vs"]["ratio"]):
        return {**row, "reason": f"not paired: {pair['reason']}"}
    named = (("kernel_p50_us", "p50_us"), ("p50_us", "other_p50_us"), *((name,) * 2 for name in PAIR))
    return {**row, **{name: pair["vs"].get(of) for name, of in named}}


def ours_row(number, kernel, line, arguments, folder):
    """A row without its peers, and where it has a time our kernel on the problem's inputs."""
    began = time.monotonic()
    record, cubin = bench_record(kernel, line, folder)
    record_s = time.monotonic() - began
    problem = record["problem"]
    row = {"options": line, "asked": arguments.asked, "kernel": record["kernel"], "variant": record["variant"],
           "config": record["config"], "code_sha256": record["provenance"]["code_sha256"],
           "git": record["provenance"]["git"], "record_s": round(record_s, 1), "problem": problem,
           "device": peers_torch.device_record(), "status": record["status"], "reason": record["reason"],
           "time": peers_torch.now(), "peers": []}
    if record["status"] != "pass":
        return row, None
    try:
        begin(number, "ours")
        ours = peers_torch.Ours(cubin, record, arguments.seed)
    except (ValueError, RuntimeError, OSError) as error:
        return {**row, "status": "not_run", "reason": refusal(number, "ours", error)}, None
    row["parity"] = ours.parity()
    if not row["parity"]["passed"]:
        return {**row, "status": "wrong", "reason": f"differs from FP64 by {row['parity']['max_abs_err']}"}, None
    row["p50_us"] = middle_of(peers_torch.graph_samples(ours.graph, ours.calls, arguments))
    row["tflops"] = problem["flop"] / row["p50_us"] * 1e-6
    row["gbytes_per_s"] = problem["bytes"] / row["p50_us"] * 1e-3
    return row, ours


def row_of(number, line, arguments, folder):
    """The row of the kernel that counts: of those that --kernel names one that failed, else the fastest; without it
    the first of the ladder, from above, that serves the problem."""
    tried = []
    for kernel in [""] if "--kernel" in line else arguments.kernel.split(","):
        tried.append(ours_row(number, kernel, line, arguments, folder))
        if not arguments.asked and tried[-1][0]["status"] not in ("infeasible", "not_run"):
            break
    failed = [one for one in tried if one[0]["status"] not in ("pass", "infeasible", "not_run")]
    row, ours = (failed + sorted((one for one in tried if one[1]), key=lambda one: one[0]["p50_us"]) + tried)[0]
    if not ours:
        return row
    signal.alarm(0)
    libraries, asked = wanted_of(row)
    problem = without(line, "--kernel")
    peers = row["peers"] = [timed(library_row, library, row["kernel"], problem, arguments, folder)
                            for library in libraries]
    stands_for = [peer["peer"] for peer in peers if "solo_us" in peer]
    peers += [timed(beside, peer, number, f"--kernel {row['kernel']} {problem}", ours.inputs, ours, arguments, folder)
              for peer in asked if peer not in stands_for]
    others = [peer for peer in peers if peer["peer"] not in OURS]
    ratios = [peer["ratio"] for peer in others if "ratio" in peer]
    alone = [peer["solo_us"] / row["p50_us"] for peer in others if "solo_us" in peer]
    row.update(ratio=min(ratios, default=None), solo_ratio=min(alone, default=None))
    for peer in peers:
        if (peer["reason"] or "").startswith("our kernel"):
            row.update(status="wrong", reason=f"beside {peer['peer']}: {peer['reason']}")
            for name in ("p50_us", "tflops", "gbytes_per_s", "ratio", "solo_ratio"):
                del row[name]
            break
    return row


def wanted_of(row):
    """The libraries that are asked, which take dense problems alone, and the peers."""
    libraries = arguments.libraries.splitlines() if peers_inputs.features_of(row["problem"]) == 0 else []
    asked = arguments.peers.split(",") if arguments.peers else (*peers_calls.CALLS, *OURS)
    return libraries, [peer for peer in peers_of(row["problem"], "--kernel" in row["options"]) if peer in asked]


def is_known(line, row, folder):
    """Has a row an answer of all that is asked, pairs too, and is it of this very machine code?"""
    if row is None or arguments.again or row["status"] != "pass" or row.get("asked", "") != arguments.asked:
        return False
    record = bench_run(["--kernel", row["kernel"], *shlex.split(without(line, "--kernel")), "--compile-only"], folder)
    if [row["config"], row["code_sha256"]] != [record["config"], record["provenance"]["code_sha256"]]:
        return False
    libraries, peers = wanted_of({**row, "problem": record["problem"]}) # an older row may lack what is asked today
    said = {peer["peer"] for peer in row["peers"] if peer["reason"] or arguments.no_pairs or "ratio" in peer}
    return said.issuperset([*map(name_of, libraries), *peers])


def text_of(row):
    words = [f"{row['options']}: {row['status']}, {row['seconds']:.0f} s"]
    if row["reason"]:
        words.append(row["reason"])
    if "tflops" in row:
        words.append(f"{row['p50_us']:.1f} us {row['tflops']:.0f} TFLOP/s {row['gbytes_per_s']:.0f} GB/s")
    for peer in row["peers"] if "p50_us" in row else []:
        said = f"{peer['status']}: {peer['reason']}"
        if "ratio" in peer:
            said = f"{peer['ratio']:.3f}"
        elif "solo_us" in peer:
            said = f"{peer['solo_us'] / row['p50_us']:.3f} alone" + (f", {peer['reason']}" if peer["reason"] else "")
        words.append(f"{peer['peer']} {said}")
    return "; ".join(words)


def means_text(rows):
    """The geometric means of the least ratios of rows."""
    words = []
    for name, how in (("solo_ratio", "alone"), ("ratio", "in pairs")):
        ratios = [row[name] for row in rows if row.get(name)]
        if ratios:
            words.append(f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} {how} over {len(ratios)} problems")
    return "geometric mean of best peer / ours: " + (", ".join(words) or "no ratio")


def parse_arguments():
    """The options of peers.sh, which has checked them; --state, --start and --lost: of one process for the next."""
    parser = argparse.ArgumentParser()
    for name, default in (("bench", "./fa_bench"), ("kernel", ""), ("asked", ""), ("libraries", ""), ("problems", ""),
                          ("only", ""), ("more", ""), ("peers", ""), ("max-time", 0.15), ("limit", 300),
                          ("no-pairs", 0), ("again", 0), ("out", ""), ("state", ""), ("start", 0), ("lost", "[]")):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.set_defaults(seed=42, warmup_ms=150)
    return parser.parse_args()


def need_one_cudnn():
    """Parts of one cuDNN alone are mapped, with --env those of its folder. libcudnn.so itself is none: PyTorch's may
    stand beside them, it hands calls on."""
    found = set(re.findall(r"(/.*)/libcudnn_[^/]*$", pathlib.Path("/proc/self/maps").read_text(), re.M))
    preloaded = re.findall(r"[^:]*/libcudnn[^:]*", os.environ.get("LD_PRELOAD", ""))
    want = {os.path.dirname(os.path.realpath(path)) for path in preloaded}
    if len(found) > 1 or (want and not found <= want):
        peers_torch.not_run(f"PyTorch has loaded cuDNN from {' and '.join(sorted(found))}" +
                            (f", not {' and '.join(want)} alone" if want else ""))


def work():
    out, rows = pathlib.Path(arguments.out), {}
    if out.exists():
        rows = {row["options"]: row for row in map(json.loads, out.read_text().splitlines())}
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, line in list(enumerate(lines))[arguments.start:]:
            if is_known(line, rows.get(line), pathlib.Path(folder)):
                continue
            row = timed(row_of, number, line, arguments, pathlib.Path(folder))
            signal.alarm(0)
            if peers_inputs.features_of(row["problem"]) == 0:  # others have cuDNN by its frontend alone
                need_one_cudnn()
            rows[line] = row
            out.with_suffix(".new").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
            out.with_suffix(".new").replace(out)
            print(text_of(row), flush=True)
            torch.cuda.empty_cache()
    print(means_text([rows[line] for line in lines]))
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
            if code in (0, 1, 2, 4, NO_RECORD) or not said:
                return code if code in (0, 1, 2, 4) else 6
            number, peer, reason = json.loads(said)
            late = f"took longer than {arguments.limit} s" if code == -signal.SIGALRM else f"ended the process: {code}"
            if [number, peer] in [at for *at, _ in lost]:
                return 6
            lost.append([number, peer, reason or late])


if __name__ == "__main__":
    arguments = parse_arguments()
    lines = lines_of()
    if not arguments.out:
        print(*lines, sep="\n", end="\n" if lines else "")
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
