"""What a sweep asks of fa_bench for a candidate, what it takes from the records, and the log it keeps them in."""

import collections
import contextlib
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import threading

PROTOCOL = "fa_bench.sweep/4"
CODES = {"pass": 0, "wrong": 1, "infeasible": 3, "not_run": 4, "timeout": 5}
RECORD_TYPES = [  # what is read of a record has its type, where it is there
    ({str}, "kernel reason fault device.backend device.name device.arch ptxas.arch config.acc"),
    ({str}, "provenance.source_sha256 provenance.compiler provenance.driver provenance.git"),
    ({bool}, "check.loosened timing.impossible provenance.cache_hit vs.accepted"),
    ({int, float}, "timing.p50_us timing.p90_us timing.sm_clock_mhz.p50 beaten.at_least_us"),
    ({int, float}, "occupancy.blocks_per_sm ptxas.registers ptxas.smem_total_bytes ptxas.spill_store_bytes"),
    ({dict}, "config problem bound"),
    ({list}, "serves needs"),
]
LINE_TYPES = [({str}, "group kernel status source_sha256"), ({int, float}, "p50_us p90_us at_least_us")]

# What times are compared on; a worker on a host has it in its environment.
Place = collections.namedtuple("Place", "gpu driver arch group")


class Refusal(Exception):
    """Ends the sweep: an exit code and a line for stderr."""


class Lost(Exception):
    """A candidate has no answer: why."""


def say(text):
    """Below the progress line of a terminal."""
    print("\n" * sys.stderr.isatty() + f"evo_sweep.sh: {text}", file=sys.stderr, flush=True)


def dig(value, path):
    for name in path.split("."):
        value = None if value is None else value.get(name)
    return value


def parse(text, types, needs):
    """JSON of these types, with strings where it needs them; or None."""
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
        if all(type(dig(value, path)) in kinds | {type(None)} for kinds, paths in types for path in paths.split()):
            return value if all(type(value.get(name)) is str for name in needs.split()) else None
    return None


def parse_record(text):
    record = parse(text, RECORD_TYPES, "schema status")
    return record if record and record["schema"] in ("fa_bench.result/1", "fa_bench.selection/1") else None


def microseconds(time):
    return "-" if time is None else f"{round(time, 2):.10g} us"


def kernel_words(kernel):
    """The options that name a kernel of the registry, or source:FILE."""
    return ["--source", kernel.removeprefix("source:")] if kernel.startswith("source:") else ["--kernel", kernel]


def knob_words(knobs):
    return [word for knob in knobs.split(",") for word in f"--{knob}".split("=")]


def run_bench(words):
    """One run of fa_bench: its exit code, its record (None where there is no whole one), what it said on stderr."""
    command = [os.environ["FA_BENCH"], *words, "--quiet", "--json", "-"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, parse_record(done.stdout), done.stderr.decode(errors="replace").strip()


def replace(path, text):
    """The file is the new one, or nothing changes and the sweep ends."""
    try:
        with open(f"{path}.tmp", "wb") as file:
            file.write(text)
        os.replace(f"{path}.tmp", path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(f"{path}.tmp")
        raise Refusal(6, f"cannot write {path}: it is as it was") from None


def is_pruned(bound, by, gpu, best_us):
    """Whether a bound says that the candidate cannot, or hardly can (by: bound or estimate), be faster than the best.

    gpu: its multiprocessors and highest clock. The bound is of a part of the architecture that has at least as many
    multiprocessors, or nothing is known.
    """
    if best_us is None or not (bound or {}).get("clocks") or gpu["sm_count"] > bound["sm_count"]:
        return False
    clocks = bound["clocks"] if by == "bound" else bound["estimate_us_low"] * bound["clock_mhz_max"]
    return clocks / gpu["clock_mhz_max"] > best_us


TOO_LARGE = "bytes of shared memory per block against the limit"  # the bench's words
GROWING = ("m", "n", "stages")  # knobs that take more shared memory when they grow


def is_larger(knobs, than):
    """Whether a tile takes no less shared memory than another: alike, but larger in what grows."""
    mine, other = (dict(part.split("=") for part in text.split(",")) for text in (knobs, than))
    return mine.keys() == other.keys() and all(
        int(mine[name]) >= int(other[name]) if name in GROWING else mine[name] == other[name] for name in mine
    )


def register_limits(result):
    """Values of --maxreg that let one and two more blocks of this tile onto a multiprocessor, by ptxas's registers.

    A multiprocessor has 65536 and gives them to a thread by eights. Below half of what the tile has, it only spills.
    """
    registers, blocks = result.get("registers"), result.get("blocks_per_sm")
    warps = (result.get("config") or {}).get("warps")
    if not (registers and blocks and warps):
        return []
    limits = [(more, 65536 // (more * 32 * warps) // 8 * 8) for more in (blocks + 1, blocks + 2)]
    return [limit for more, limit in limits if more * warps <= 64 and max(24, registers / 2) <= limit < registers]


SHARE = {}  # the environment of each worker: its part of the cores. What runs alone has them all
# Of glibc: what a compiler frees serves its next candidate (docs/scaling.md).
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "2000000000", "MALLOC_TOP_PAD_": "67108864", "MALLOC_MMAP_MAX_": "0"}


class Bench:
    """A fa_bench that lives through many candidates (--runs - --stream), used by one thread."""

    closing = False  # the sweep ends: none is started again

    def __init__(self, command, nice=0, **environment):
        self.command = [*command, "--runs", "-", "--stream", "--quiet", "--json", "-"]
        self.nice, self.environment, self.process = nice, {**SHARE, **os.environ, **environment}, None

    def start(self):
        if self.closing:
            raise SystemExit  # of this thread
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=null, env=self.environment)
        if self.nice:
            now = os.getpriority(os.PRIO_PROCESS, 0)
            with contextlib.suppress(OSError):  # it has ended
                os.setpriority(os.PRIO_PROCESS, self.process.pid, now + self.nice)

    def ask(self, line):
        """The record as text; None when the process died over it."""
        if self.process is None:
            self.start()
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
            text = self.process.stdout.readline()
            if text.endswith(b"\n"):
                return text
        self.end()
        return None

    def ask_twice(self, line):
        """Asks once more when the process died: its death may have been no fault of the candidate."""
        return self.ask(line) or self.ask(line)

    def end(self):
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.wait()


class Log:
    """leaderboard.jsonl. Other sweeps append to it, too, all under one lock."""

    def __init__(self, path):
        self.path, self.lines, self.at, self.file, self.reader = path, {}, 0, None, threading.Lock()

    @contextlib.contextmanager
    def locked(self):
        with open(os.path.join(os.path.dirname(self.path), ".lock"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def append(self, lines):
        """All of a line or none of it."""
        with self.locked(), open(self.path, "ab", buffering=0) as file:
            for line in lines:
                size, text = file.seek(0, os.SEEK_END), line.encode() + b"\n"
                written = 0
                with contextlib.suppress(OSError):
                    written = file.write(text)
                if written != len(text):
                    file.truncate(size)
                    why = "(disk full?): this result is lost, none before it"
                    raise Refusal(6, f"cannot append to {self.path} {why}: {line}")

    def read(self):
        """Takes in what has come since the last time: the last line of each key, in the order of the log."""
        with self.reader, open(self.path, "rb") as file:
            facts = os.fstat(file.fileno())
            if self.file != facts.st_ino or facts.st_size < self.at:
                self.file, self.at = facts.st_ino, 0
            file.seek(self.at)
            for line in file:
                if line.endswith(b"\n"):
                    self.at += len(line)
                    found = re.search(rb'"key":"(\w+)"', line)
                    key = found and found[1].decode()
                    self.lines.pop(key, None)
                    self.lines[key] = line

    def find(self, key):
        """The last result with this key."""
        self.read()
        with self.reader:
            return json.loads(self.lines[key]) if key in self.lines else None

    def results(self):
        self.read()
        return [line for line in (parse(text, LINE_TYPES, "key knobs") for text in self.lines.values()) if line]

    def mend(self):
        """A line that is no result (a torn write, an edit) is set aside; says how many."""
        with open(self.path, "rb") as file:
            text = file.read()
        good, bad = [], []
        for line in text.removesuffix(b"\n").split(b"\n") if text else []:
            (good if parse(line, LINE_TYPES, "key knobs") else bad).append(line + b"\n")
        if bad:
            with open(f"{self.path}.corrupt", "ab") as file:
                file.writelines(bad)
        if b"".join(good) != text:
            replace(self.path, b"".join(good))
        return len(bad)


class Candidates:
    """Compiles and runs candidates of a kernel; the answers are lines of the log."""

    def __init__(self, kernel, options, prune="none"):
        self.kernel, self.options, self.prune = kernel, options, prune
        self.best_us = None  # what a candidate must beat to be timed to the end
        self.refused = []  # tiles that take too much shared memory: a larger one is not compiled
        self.blocks = {}  # of a tile without its register limit: with it there must be more
        self.command = [os.environ["FA_BENCH"], *kernel_words(kernel), *options]

    def settle(self, log, place, gpu_facts=None):
        """Before the first of them: runners begin while the place is not known."""
        self.log, self.place, self.gpu_facts = log, place, gpu_facts
        self.gpu, self.driver, self.arch, self.group = place
        return self

    def compiler(self):
        bound = "--no-bound" if self.prune == "none" else "--bound"
        words = [*self.command, "--compile-only", "--arch", self.arch, bound]
        return Bench(words, nice=10, **KEEPS_MEMORY)  # runners come first

    def runner(self, **environment):
        return Bench([*self.command, "--no-bound"], **environment)

    def ask(self, bench, knobs, *words):
        text = bench.ask_twice(" ".join([*knob_words(knobs), *words]))
        if text is None:
            raise Lost(f"the worker of {knobs} died twice")
        record = parse_record(text)
        if record is None:
            raise Lost(f"no whole record of {knobs}")
        return record

    def compile(self, bench, knobs):
        """The answer of a candidate that is known or does not run; of others a tuple, what `run` takes."""
        if any(is_larger(knobs, than) for than in self.refused):
            return {"knobs": knobs, "status": "pruned"}
        record = self.ask(bench, knobs)
        if TOO_LARGE in (record.get("reason") or ""):
            self.refused.append(knobs)
        made = record.get("provenance") or {}
        content = [made.get(name) for name in ("source_sha256", "options", "compiler")]
        content += [record.get("problem"), self.gpu, self.driver, PROTOCOL, self.kernel, knobs, self.options]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        compiled = {name: made.get(name) for name in ("cache_hit", "compile_s")}
        known = self.log.find(key)
        if known is not None and not self.may_win(known):
            return {**known, "known": True}
        if record["status"] != "pass":
            return self.line(record, knobs, key, compiled)
        if (dig(record, "occupancy.blocks_per_sm") or 1) <= self.blocks.get(knobs, 0):
            return {"knobs": knobs, "status": "pruned"}  # shared memory lets no further block in
        with contextlib.suppress(TypeError, KeyError):
            if self.prune != "none" and is_pruned(record.get("bound"), self.prune, self.gpu_facts, self.best_us):
                return {"knobs": knobs, "status": "pruned"}
        return knobs, key, compiled

    def may_win(self, known):
        """It was beaten by what is not there, or slower, today."""
        return known["status"] == "beaten" and (self.best_us is None or known["at_least_us"] <= self.best_us)

    def run(self, bench, knobs, key, compiled):
        beat = [] if self.best_us is None else ["--beat", f"{self.best_us:.10g}"]
        return self.line(self.ask(bench, knobs, *beat), knobs, key, compiled)

    def measure(self, knobs):
        """The answer of one candidate, in processes of its own."""
        compiler, runner = self.compiler(), self.runner()
        try:
            outcome = self.compile(compiler, knobs)
            return self.run(runner, *outcome) if isinstance(outcome, tuple) else outcome
        finally:
            compiler.end()
            runner.end()

    def line(self, record, knobs, key, compiled):
        """A time below the roofline is no result, and one from another kind of GPU is not ours."""
        here = record.get("device") is None or dig(record, "device.name") == self.gpu
        if not here and self.gpu != "CPU emulator":
            raise Lost(f"no whole record of {knobs} from this GPU")
        p50_us = None if dig(record, "timing.impossible") else dig(record, "timing.p50_us")
        made = ("code_sha256", "source_sha256", "git", "time", "stage_s")
        return {
            "key": key, "group": self.group, "gpu": self.gpu, "kernel": self.kernel, "variant": record.get("variant"),
            "knobs": knobs, "arch": dig(record, "ptxas.arch"), "config": record.get("config"),
            "class": dig(record, "config.acc") or "fp32", "problem": record.get("problem"),
            "status": "beaten" if record.get("beaten") else record["status"],
            "reason": record.get("reason"), "fault": record.get("fault"),
            **({"at_least_us": dig(record, "beaten.at_least_us")} if record.get("beaten") else {}),
            "code": CODES.get(record["status"], 6), "p50_us": p50_us, "p90_us": dig(record, "timing.p90_us"),
            "loosened": dig(record, "check.loosened") or False, "registers": dig(record, "ptxas.registers"),
            "blocks_per_sm": dig(record, "occupancy.blocks_per_sm"),
            "smem_bytes": dig(record, "ptxas.smem_total_bytes"), "spill_bytes": dig(record, "ptxas.spill_store_bytes"),
            **{name: dig(record, f"provenance.{name}") for name in made}, **compiled,
            **{name: record[name] for name in ("serves", "needs") if record.get(name)},
        }  # fmt: skip
