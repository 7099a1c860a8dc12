"""What a sweep asks of fa_bench for a candidate, what it takes from the records, and the log it keeps them in."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import subprocess
import threading

PROTOCOL = "fa_bench.sweep/4"
TYPES = [  # of a record's fields, where it has them
    ({str}, "kernel reason device.name ptxas.arch config.acc provenance.source_sha256 provenance.compiler"),
    ({bool}, "check.loosened timing.impossible provenance.cache_hit"),
    ({int, float}, "timing.p50_us timing.p90_us ptxas.registers ptxas.smem_total_bytes ptxas.spill_store_bytes"),
    ({dict}, "config problem bound"),
]
CODES = {"pass": 0, "wrong": 1, "infeasible": 3, "not_run": 4, "timeout": 5}


class Refusal(Exception):
    """Ends the sweep: an exit code and a line for stderr."""


def dig(value, path):
    for name in path.split("."):
        value = None if value is None else value.get(name)
    return value


def parse(text):
    """A whole record, or None."""
    try:
        record = json.loads(text)
        json.dumps(record, allow_nan=False)
        whole = record["schema"] == "fa_bench.result/1" and type(record["status"]) is str
        for kinds, paths in TYPES:
            whole = whole and all(type(dig(record, path)) in kinds | {type(None)} for path in paths.split())
        return record if whole else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def is_pruned(bound, by, gpu, best_us):
    """Whether a bound says that the candidate cannot, or hardly can (by: bound or estimate), be faster than the best.

    gpu: its multiprocessors and highest clock. The bound is of a part of the architecture that has at least as many
    multiprocessors, or nothing is known.
    """
    if best_us is None or not (bound or {}).get("clocks") or gpu["sm_count"] > bound["sm_count"]:
        return False
    clocks = bound["clocks"] if by == "bound" else bound["estimate_us_low"] * bound["clock_mhz_max"]
    return clocks / gpu["clock_mhz_max"] > best_us


class Bench:
    """A fa_bench that lives through many candidates (--runs - --stream), used by one thread."""

    closing = False  # the sweep ends: none is started again

    def __init__(self, command, nice=0, **environment):
        self.command, self.nice, self.environment, self.process = command, nice, environment, None

    def start(self):
        if Bench.closing:
            raise SystemExit  # of this thread
        more = ["--no-bound"] if "--bound" not in self.command else []
        self.process = subprocess.Popen(
            [*self.command, *more, "--runs", "-", "--stream", "--quiet", "--json", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )  # fmt: skip
        if self.nice:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, self.nice)

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
        """The same, and once more when it died: its death may have been no fault of the candidate."""
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
        self.path, self.lines, self.at, self.file = path, {}, 0, None
        self.thread_lock = threading.Lock()

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
                try:
                    if file.write(text) != len(text):
                        raise OSError
                except OSError:
                    file.truncate(size)
                    raise Refusal(
                        6, f"cannot append to {self.path} (disk full?): this result is lost, none before it: {line}"
                    ) from None

    def find(self, key):
        """The last result with this key. Reads what has come since the last time."""
        with self.thread_lock:
            with open(self.path, "rb") as file:
                facts = os.fstat(file.fileno())
                if self.file != facts.st_ino or facts.st_size < self.at:
                    self.file, self.at = facts.st_ino, 0
                if facts.st_size > self.at:
                    file.seek(self.at)
                    for line in file:
                        if not line.endswith(b"\n"):
                            break
                        self.at += len(line)
                        found = re.search(rb'"key":"(\w+)"', line)
                        if found:
                            self.lines[found[1].decode()] = line
            line = self.lines.get(key)
        return None if line is None else json.loads(line)

    def mend(self):
        """A line that is no result (a torn write, an edit) is set aside; says how many."""
        with open(self.path, "rb") as file:
            text = file.read()
        lines = text.split(b"\n")
        lines = lines if lines[-1] else lines[:-1]
        good = [line for line in lines if is_result(line)]
        bad = [line for line in lines if not is_result(line)]
        if bad:
            try:
                with open(f"{self.path}.corrupt", "ab") as file:
                    file.write(b"".join(line + b"\n" for line in bad))
            except OSError:
                raise Refusal(6, f"cannot write {self.path}.corrupt: {self.path} is as it was") from None
        if bad or (text and not text.endswith(b"\n")):
            try:
                with open(f"{self.path}.tmp", "wb") as file:
                    file.write(b"".join(line + b"\n" for line in good))
                os.replace(f"{self.path}.tmp", self.path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(f"{self.path}.tmp")
                raise Refusal(6, f"cannot write {self.path}: it is as it was") from None
        return len(bad)


def is_result(line):
    try:
        row = json.loads(line)
        return (
            {type(row["key"]), type(row["knobs"])} == {str}
            and all(type(row.get(k)) in (str, type(None)) for k in ("group", "kernel", "status", "source_sha256"))
            and all(type(row.get(k)) in (int, float, type(None)) for k in ("p50_us", "p90_us"))
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


class Candidates:
    """Compiles and runs candidates of a kernel; the answers are lines of the log, or {"knobs", "lost": why}."""

    def __init__(self, kernel, options, log, prune=None, gpu_facts=None):
        self.kernel, self.options, self.log, self.prune, self.gpu_facts = kernel, options, log, prune, gpu_facts
        self.gpu, self.driver, self.arch, self.group = (
            os.environ[f"SWEEP_{name}"] for name in ("GPU", "DRIVER", "ARCH", "GROUP")
        )
        self.best_us = None
        flag = "--source" if kernel.startswith("source:") else "--kernel"
        self.command = [os.environ["FA_BENCH"], flag, kernel.removeprefix("source:"), *options]

    def compiler(self):
        more = ["--bound"] if self.prune else []
        return Bench([*self.command, "--compile-only", "--arch", self.arch, *more], nice=10)  # runners come first

    def runner(self, **environment):
        return Bench(self.command, **environment)

    @staticmethod
    def words(knobs):
        return " ".join(f"--{knob.replace('=', ' ')}" for knob in knobs.split(","))

    def compile(self, bench, knobs):
        """(answer, None) of a candidate that is known or does not run; (None, its work for a runner) of others."""
        text = bench.ask_twice(self.words(knobs))
        if text is None:
            return {"knobs": knobs, "lost": f"the worker of {knobs} died twice"}, None
        record = parse(text)
        if record is None:
            return {"knobs": knobs, "lost": f"no whole record of compiling {knobs}"}, None
        made = record.get("provenance") or {}
        compiled = {name: made.get(name) for name in ("cache_hit", "compile_s")}
        content = [made.get(name) for name in ("source_sha256", "options", "compiler")]
        content += [record.get("problem"), self.gpu, self.driver, PROTOCOL, self.kernel, knobs, self.options]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        known = self.log.find(key)
        if known is not None:
            return {**known, "known": True}, None
        if record["status"] != "pass":
            return self.answer(knobs, key, compiled, record), None
        with contextlib.suppress(TypeError, KeyError):
            if self.prune and is_pruned(record.get("bound"), self.prune, self.gpu_facts, self.best_us):
                return {"knobs": knobs, "status": "pruned"}, None
        return None, (knobs, key, compiled)

    def run(self, bench, knobs, key, compiled):
        text = bench.ask_twice(self.words(knobs))
        if text is None:
            return {"knobs": knobs, "lost": f"the worker of {knobs} died twice"}
        return self.answer(knobs, key, compiled, parse(text))

    def answer(self, knobs, key, compiled, record):
        """A time below the roofline is no result, and one from another kind of GPU is not ours."""
        name = dig(record, "device.name")
        here = self.gpu == "CPU emulator" or record is None or record.get("device") is None or name == self.gpu
        if record is None or not here:
            return {"knobs": knobs, "lost": f"no whole record of {knobs} from this GPU"}
        line = {"key": key, "group": self.group, "gpu": self.gpu, "kernel": self.kernel}
        line |= {"variant": record.get("variant"), "knobs": knobs, "arch": dig(record, "ptxas.arch")}
        line |= {"config": record.get("config"), "class": dig(record, "config.acc") or "fp32"}
        line |= {name: record.get(name) for name in ("problem", "status", "reason")}
        line |= {"code": CODES.get(record["status"], 6), "p50_us": dig(record, "timing.p50_us")}
        line |= {"p90_us": dig(record, "timing.p90_us"), "loosened": dig(record, "check.loosened") or False}
        if dig(record, "timing.impossible"):
            line["p50_us"] = None
        line |= {"registers": dig(record, "ptxas.registers"), "smem_bytes": dig(record, "ptxas.smem_total_bytes")}
        line |= {"spill_bytes": dig(record, "ptxas.spill_store_bytes")}
        for name in ("code_sha256", "source_sha256", "git", "time", "stage_s"):
            line[name] = dig(record, f"provenance.{name}")
        return line | compiled
