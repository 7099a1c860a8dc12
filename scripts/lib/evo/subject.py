"""What a sweep is about: a kernel with its tile space, the problem, and the GPU that candidates are timed on."""

import json
import math
import os
import re
import subprocess
import sys

from candidate import Place, Refusal, dig, kernel_words, parse_record, run_bench

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
EMULATOR = "CPU emulator"
# What changes a time without being part of the problem names a leaderboard of its own.
CONDITIONS = ("--l2", "--dist", "--misalign", "--timing", "--compiler")
# What a problem may have besides its shape, mask and types.
FEATURES = "op deterministic dim_v v_in_k window chunk softcap sinks alibi bias mask lengths page_size".split()
EXPLORE = {"--seeds": "1", "--check": "cpu", "--warmup-ms": "60", "--max-time": "0.1"}


def gpu_sh(function, word):
    """What a function of scripts/lib/gpu.sh prints."""
    command = ["bash", "-c", f'. "$1"; {function} "$2"', "-", os.path.join(ROOT, "scripts/lib/gpu.sh"), word]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip()


def kernel_rows(*words):
    done = subprocess.run([os.environ["FA_BENCH"], "--list-kernels", *words, "--json", "-"], stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)  # fa_bench has said why
    return json.loads(done.stdout)


def values_of(words, names):
    """The pairs NAME VALUE with one of these names."""
    return [pair for pair in zip(words, words[1:]) if pair[0] in names]


def pin(space, words):
    """The space with the knobs among the options at their values, and the other options."""
    space, words, others = dict(space), list(words), []
    while words:
        name = words.pop(0)
        if name.removeprefix("--") not in space or not words:
            others.append(name)
        elif re.fullmatch("[0-9]+", words[0]):
            space[name.removeprefix("--")] = [int(words.pop(0))]
        else:
            raise Refusal(2, f"{name} takes a number, not '{words[0]}'")
    return space, others


def is_emulator_wanted(words):
    return ("--device", "emu") in values_of(words, ("--device",))


def visible(jobs):
    """The GPUs that may be taken."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(jobs)))).split(",")


class Gpu:
    """The device of a run that any device does at once."""

    def __init__(self, kernel, words, runner, swept):
        device = [word for pair in values_of(words, ("--device", "--gpu")) for word in pair]
        self.probe = ["--batch", "1", "--heads", "1", "--kv-heads", "1", "--seq", "16", "--seq-kv", "16", "--dim", "64"]
        self.probe += ["--seeds", "1", "--check", "cpu", "--timing", "none"]
        self.kernel, self.is_chosen = kernel, "--gpu" in device
        # A sweep's first runner is asked, which has its context then; a process where it has no answer.
        record, text = runner and parse_record(runner.ask(self.line(swept)) or b""), ""
        if dig(record, "device.name") is None:
            _, record, text = run_bench(["--kernel", kernel, *device, *self.probe])
        if record and record["status"] == "not_run":
            raise Refusal(4, f"not run: {record.get('reason')}")
        found = (record or {}).get("device") or {}
        self.name = found.get("name") if found.get("backend") == "cuda" else EMULATOR
        self.driver, self.git = (dig(record, f"provenance.{name}") or "none" for name in ("driver", "git"))
        arch = found.get("arch") or ""
        named = all(word and word.isprintable() for word in (self.name, self.driver))
        if not named or not re.fullmatch("sm_[0-9]+", arch):
            raise Refusal(4, f"no whole record of a first run: {text}")
        self.folder, self.target = gpu_sh("gpu_folder", self.name), gpu_sh("gpu_target", arch)
        self.facts = {name: found.get(name) for name in ("sm_count", "clock_mhz_max")}
        self.emulated = self.name == EMULATOR
        self.is_emulator_wanted = is_emulator_wanted(words)

    def line(self, swept):
        """What a runner of a kernel runs for its context. A file of one's own takes no --kernel beside it."""
        return " ".join([*([] if swept.startswith("source:") else ["--kernel", self.kernel]), *self.probe])

    def numbers(self, jobs):
        """The GPUs of --jobs; each runner sees for itself that its GPU is the same kind as the first."""
        if jobs == 1 or self.emulated:
            return [None]
        if self.is_chosen:
            raise Refusal(2, f"--gpu names one GPU, --jobs {jobs} takes more: one of the two")
        numbers = visible(jobs)
        if len(numbers) < jobs:
            raise Refusal(2, f"--jobs {jobs}, but CUDA_VISIBLE_DEVICES names {len(numbers)}")
        return numbers[:jobs]


class Subject:
    def __init__(self, kernel, words, rows):
        self.kernel, own = kernel, kernel.startswith("source:")
        rows = kernel_rows(*kernel_words(kernel)) if own else rows
        self.row = next((row for row in rows if own or (row["name"] == kernel and row["kind"] == "hand")), None)
        if self.row is None:
            raise Refusal(2, f"no kernel '{kernel}' with a tile space (fa_bench --list-kernels)")
        stated = [name for name in self.row.get("stated", []) if name != "acc"]
        if own and not stated:
            text = "states no knobs: // FA_SPACE: m=16,32 warps=4,8"
            raise Refusal(2, f"{kernel.removeprefix('source:')} {text}")
        space = {name: values for name, values in self.row["values"].items() if name != "acc"}
        tried = {name: values for name, values in space.items() if len(values) > 1 or name in stated}
        self.space, self.problem = pin(tried, words)
        # Register limits follow from ptxas's registers, unless the kernel states some or the options take one.
        self.derives_maxreg = "maxreg" not in self.space and not any(w.startswith("--maxreg") for w in self.problem)
        self.points = math.prod(map(len, self.space.values()))
        self.explore = [*self.problem]
        for name, value in EXPLORE.items():
            self.explore += [name, value] if name not in self.problem else []

    def compiled(self, kernel, arch, *tile):
        """The record of the problem with this tile, else with what the kernel's rules choose."""
        return run_bench([*kernel_words(kernel), *tile, *self.problem, "--compile-only", "--arch", arch])

    def locate(self, gpu):
        """What its results are compared with, and the tile that the registry would take. Compiles nothing."""
        target = gpu.target
        if gpu.emulated and self.row.get("min_arch", 0) > int(re.sub("[^0-9]", "", target)):  # it is any GPU
            target = gpu_sh("gpu_target", f"sm_{self.row['min_arch']}")
        code, record, text = run_bench([*kernel_words(self.kernel), *self.problem, "--select", "--arch", target])
        if code == 2:
            raise Refusal(2, text)
        if gpu.emulated and not gpu.is_emulator_wanted:
            text = "NOT-RUN: no GPU here, and a sweep needs times"
            raise Refusal(4, f"{text} (-- --device emu compiles and checks the candidates alone)")
        if record is None or not record.get("problem"):
            raise Refusal(6, f"no whole record of the problem: {text}")
        conditions = "".join(f"|{name} {value}" for name, value in values_of(self.problem, CONDITIONS))
        self.place = Place(gpu.name, gpu.driver, target, group_of(record, gpu.name, target, conditions))
        config = record.get("config") or {}
        if record.get("variant") not in (None, self.kernel):  # a variant serves the problem, with a tile of its own
            config = self.row["defaults"]
        tile = [f"{name}={config[name]}" for name, values in self.space.items() if config.get(name) in values]
        self.default_tile = ",".join(tile) if len(tile) == len(self.space) else ""


def group_of(record, gpu, target, conditions=""):
    """GPU, target, problem, class, conditions. The kernel comes on top for its own best tile."""
    problem = record["problem"]
    shape = ",".join(str(problem.get(name)) for name in ("batch", "heads", "kv_heads", "seq_q", "seq_kv", "dim"))
    mask, dtype = "causal" if problem.get("causal") else "full", problem.get("dtype") or "fp16"
    typed = "" if dtype == "fp16" else f" {dtype}"
    if dtype != "e4m3" and problem.get("kv_dtype") == "e4m3":
        typed += " kv e4m3"
    usual = {"op": "forward", "dim_v": problem.get("dim"), "mask": "none"}
    for name in FEATURES:
        if problem.get(name) and problem[name] != usual.get(name):
            typed += f" {name} {json.dumps(problem[name], separators=(',', ':'))}".replace('"', "")
    return f"{gpu}|{target}|{shape},{mask}{typed}|{dig(record, 'config.acc') or 'fp32'}{conditions}"
