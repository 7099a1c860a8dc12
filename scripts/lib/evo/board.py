"""The leaderboard of a sweep: the best tile of each kernel and who leads (leaderboard.json), the eight fastest results
(micro_best.json)."""

import contextlib
import fcntl
import json
import os
import re

from candidate import Candidates, Lost, Refusal, dig, kernel_words, knob_words, microseconds, replace, run_bench, say

TIMES = ("p50_us", "p90_us", "p50_ci95_us", "method")
EXPLORED_ONLY = ("key", "code", "reason", "fault", "status", "loosened", "stage_s", "cache_hit", "compile_s")
TOP = "kernel variant knobs p50_us p90_us registers smem_bytes group arch problem config code_sha256 git".split()
SAID = ("serves", "needs")  # of a kernel, where it says some


def write(path, rows):
    replace(path, f"{json.dumps(rows, indent=2)}\n".encode())


def is_name(word):
    return type(word) is str and word.isprintable()


def is_board(rows):
    return type(rows) is list and all(
        type(row) is dict and is_name(row.get("group")) and is_name(row.get("leader") or "")
        and type(row.get("kernels")) is dict
        and all(type(entry) is dict and is_name(entry.get("knobs")) for entry in row["kernels"].values())
        for row in rows
    )  # fmt: skip


def is_timed(result):
    """It passed with the rule's tolerances and has a time."""
    return result.get("status") == "pass" and result.get("p50_us") is not None and not result.get("loosened")


def fastest_first(results):
    return sorted(filter(is_timed, results), key=lambda result: result["p50_us"])


class Board:
    def __init__(self, subject, candidates, results, began, out):
        self.subject, self.results, self.seed, self.out = subject, results, int(began) % 100000, out
        self.kernel, self.group, self.log = subject.kernel, candidates.group, candidates.log
        # Not those of the sweep, which may leave a slow one unmeasured.
        self.candidates = Candidates(subject.kernel, subject.explore).settle(self.log, subject.place)
        self.path, self.best = os.path.join(out, "leaderboard.json"), os.path.join(out, "micro_best.json")

    def update(self):
        # Held to the end: two sweeps compare with the same incumbent one after the other.
        with open(os.path.join(self.out, ".board.lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            rows = self.read()
            knobs, record = self.champion()
            if knobs:
                self.enter(rows, knobs, record)
            write(self.best, self.top())

    def read(self):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            with open(self.path) as file:
                rows = json.load(file)
            if is_board(rows):
                return rows
        if os.path.exists(self.path):
            os.replace(self.path, f"{self.path}.corrupt")
            say(f"{self.path} is no leaderboard: set aside as {self.path}.corrupt")
        write(self.path, [])
        return []

    def run(self, knobs, *words, seed):
        seed = str(seed + self.seed)
        kernel = [*kernel_words(self.kernel), *knob_words(knobs)]
        return run_bench([*kernel, *words, *self.subject.problem, "--seed", seed, "--no-bound"])

    def confirmed(self, knobs):
        """Right on fresh seeds, five unless the sweep was given another number, and timed by the whole protocol."""
        code, record, _ = self.run(knobs, seed=2000)
        return code == 0 and record is not None, record

    def beats(self, knobs, kernel, other):
        """By --vs alone, twice, each in a fresh process on a fresh seed (docs/timing.md): the second comparison."""
        for turn in 1, 2:
            code, record, _ = self.run(knobs, "--vs", f"{kernel}:{other}", seed=1000 + 10 * turn)
            if code or not dig(record, "vs.accepted"):
                return None
        return {name: record["vs"].get(name) for name in ("kernel", "config", "ratio", "ratio_ci95")}

    def champion(self):
        """The fastest candidate that holds on fresh seeds; one that does not is wrong, and the log says so. What it
        had beaten is timed then."""
        for result in self.fastest():
            holds, record = self.confirmed(result["knobs"])
            if holds or record is None:
                return result["knobs"] if holds else None, record
            status, reason = record["status"], record.get("reason")
            say(f"{self.kernel} {result['knobs']} does not hold on fresh seeds: {status} {reason or ''}")
            withdrawn = {"status": status, "reason": reason, "p50_us": None, "p90_us": None}
            self.append({**self.log.find(result["key"]), **withdrawn})
        return None, None

    def fastest(self):
        """The timed results, the fastest first. When the first is gone, so may be what others were beaten by: those
        that may be next are timed to the end."""
        left = list(self.results)
        while timed := fastest_first(left):
            yield timed[0]
            left.remove(timed[0])
            limit = next((result["p50_us"] for result in fastest_first(left)), float("inf"))
            for result in [r for r in left if r["status"] == "beaten" and r["at_least_us"] <= limit]:
                left.remove(result)
                left += filter(None, [self.measured(result["knobs"])])

    def append(self, line):
        self.log.append([json.dumps(line, separators=(",", ":"))])

    def enter(self, rows, knobs, record):
        """The champion, or the incumbent that it does not beat, becomes the kernel's entry; then it is compared with
        the leader of the group."""
        row = next((row for row in rows if row["group"] == self.group), None)
        if row is None:
            row = {"group": self.group, "leader": None, "kernels": {}}
            rows.append(row)
        kernels, over = row["kernels"], None
        holder = kernels.get(self.kernel, {}).get("knobs")
        if holder and holder != knobs:
            over = self.beats(knobs, self.kernel, holder)
            holds, held = (False, None) if over else self.confirmed(holder)
            if holds:  # otherwise the incumbent's edited source is wrong on fresh seeds
                knobs, record = holder, held
        entry = self.entry(knobs, record, over)
        if entry is None:
            return
        row["leader"] = row["leader"] or self.kernel
        if any(kernels.get(self.kernel, {}).get(name) != entry.get(name) for name in ("knobs", "source_sha256")):
            kernels[self.kernel] = entry  # the same tile of the same source keeps the entry that it has
        write(self.path, rows)
        leader = row["leader"]
        if leader != self.kernel and self.beats(knobs, leader, kernels.get(leader, {}).get("knobs", "")):
            row["leader"] = self.kernel
            write(self.path, rows)

    def entry(self, knobs, record, over):
        """The tile's line of the log, with its confirmed times and what it has beaten; None where it has no line."""
        line = self.line(knobs)
        if line is None:
            return None
        entry = {**line, "explored_p50_us": line.get("p50_us")}
        for name in EXPLORED_ONLY:
            entry.pop(name, None)
        timing = record.get("timing") or {}
        entry.update({name: timing.get(name) for name in TIMES}, sm_clock_mhz=dig(timing, "sm_clock_mhz.p50"))
        entry.update(self.gain(line, self.log.results()))
        seeds, time = dig(record, "check.seeds"), dig(record, "provenance.time")
        return {**entry, "seeds": seeds, "time": time, "over": over}

    def gain(self, line, lines):
        """What a register limit gained: the explored time of the same tile without it over its own."""
        bare = re.sub(",maxreg=[0-9]+", "", line["knobs"])
        same = ("kernel", "group", "source_sha256")
        for other in reversed(lines if bare != line["knobs"] else []):
            if other["knobs"] == bare and is_timed(other) and all(other.get(n) == line.get(n) for n in same):
                return {"maxreg_gain": round(other["p50_us"] / line["p50_us"], 3)}
        return {}

    def line(self, knobs):
        """What the log has of this tile as it is today; what was never measured is measured now."""
        for result in self.results:
            if result["knobs"] == knobs and result["key"]:
                return self.log.find(result["key"])
        return self.measured(knobs)

    def measured(self, knobs):
        """A line of the log that is made now; None where there is no answer."""
        try:
            line = self.candidates.measure(knobs)
        except Lost as lost:
            say(f"left out: {lost}")
            return None
        if not line.pop("known", False):
            self.append(line)
        return line

    def top(self):
        """The eight fastest results of the group, of the sources that are compiled today: an older time is stale."""
        lines = [line for line in self.log.results() if line.get("group") == self.group and is_timed(line)]
        sources = {self.kernel: next((r["source_sha256"] for r in self.results if r["source_sha256"]), None)}
        for line in reversed(lines):
            kernel, knobs = line.get("kernel"), line["knobs"]
            if kernel not in sources and is_name(kernel) and is_name(knobs):
                # With a tile: without one a variant, which has a source of its own, may serve the problem.
                _, record, _ = self.subject.compiled(kernel, self.subject.place.arch, *knob_words(knobs))
                sources[kernel] = dig(record, "provenance.source_sha256")
        # The last result of a tile counts: it may have another driver or compiler than an earlier one.
        today = [line for line in lines if line.get("source_sha256") in {sources.get(line.get("kernel"))} - {None}]
        tiles = {(line["kernel"], line["knobs"]): line for line in today}
        return [{name: line.get(name) for name in TOP} | {name: line[name] for name in SAID if line.get(name)}
                | self.gain(line, lines) for line in fastest_first(tiles.values())[:8]]  # fmt: skip


def print_best(out):
    """The eight fastest of the folder."""
    with contextlib.suppress(OSError, ValueError), open(os.path.join(out, "micro_best.json")) as file:
        for row in json.load(file):
            facts = f"regs {row['registers']} smem {row['smem_bytes']}"
            said = "".join(f"  {name} {' '.join(row[name])}" for name in SAID if row.get(name))
            gain = f"  the register limit gains {row['maxreg_gain']}" if "maxreg_gain" in row else ""
            print(f"{microseconds(row['p50_us'])}  {row['kernel']} {row['knobs']}  {facts}{said}{gain}")
