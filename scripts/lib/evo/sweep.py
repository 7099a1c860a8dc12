#!/usr/bin/env python3
"""The search of scripts/evo_sweep.sh. One process proposes candidates, feeds all workers and writes the log.

Compilers take candidates in turn, answer what is known or does not compile, and hand the rest to the runners of the
GPUs. Each is a thread here and a fa_bench that lives as long as the sweep: a process, and on a GPU a context, for
every candidate would cost more than its measurement. On hosts GNU parallel starts such workers for a few candidates at
a time.

    sweep.py search OPTIONS -- FA_BENCH-OPTIONS      sweep.py measure KERNEL "KNOBS..." LOG FA_BENCH-OPTIONS
    sweep.py propose OPTIONS                         sweep.py append LOG <LINES
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from candidate import Bench, Candidates, Log, Refusal, parse_record
from propose import proposer_of

RUNNERS_PER_GPU = 4  # one is timed while the others load and check


def say(text):
    """Below the progress line of a terminal."""
    print("\n" * sys.stderr.isatty() + f"evo_sweep.sh: {text}", file=sys.stderr, flush=True)


def lost(knobs):
    return {"knobs": knobs, "lost": f"no worker answered for {knobs}"}


class Here:
    """The workers of this machine. A runner asks its GPU the line of options in `probe` first."""

    def __init__(self, pool, candidates, answers, gpus=(None,), probe=None):
        self.candidates, self.answers, self.probe = candidates, answers, probe
        self.todo, self.ready, self.benches, each = queue.SimpleQueue(), queue.SimpleQueue(), [], pool
        if candidates.gpu != "CPU emulator":
            each = min(-(-pool // len(gpus)), RUNNERS_PER_GPU)
        # Each check gets its share of the cores: threads of several checks that spin for one another only take turns.
        os.environ.setdefault("OMP_NUM_THREADS", str(-(-len(os.sched_getaffinity(0)) // (each * len(gpus)))))
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        for gpu in each * [*gpus]:
            bench = candidates.runner(**({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}))
            self.begin(bench, self.ready, candidates.run, gpu)
        for _ in range(pool):
            self.begin(candidates.compiler(), self.todo, candidates.compile)

    def begin(self, *what):
        self.benches.append(what[0])
        threading.Thread(target=self.serve, args=what, daemon=True).start()

    def serve(self, bench, jobs, ask, gpu=None):
        if jobs is self.ready and self.probe and self.candidates.gpu != "CPU emulator":
            self.warm_up(bench, gpu)
        while True:
            job = jobs.get()
            try:
                outcome = ask(bench, *job)
            except Exception as error:  # of any kind: each candidate has an answer
                outcome = {"knobs": job[0], "lost": str(error)}
            (self.ready if isinstance(outcome, tuple) else self.answers).put(outcome)

    def warm_up(self, bench, gpu):
        """The first use of a GPU by a process takes up to a second: it happens while the first candidates compile."""
        record = parse_record(bench.ask(self.probe) or b"") or {}
        if record.get("status") == "not_run":
            self.answers.put(Refusal(4, f"not run: {record['reason']}"))
        elif record.get("device") and record["device"].get("name") != self.candidates.gpu:
            self.answers.put(Refusal(4, f"GPU {gpu} is no {self.candidates.gpu}"))

    def feed(self, batch):
        for knobs in batch:
            self.todo.put((knobs,))

    def close(self):
        pass

    def look(self, waiting):
        pass

    def end(self, kill):
        Bench.closing = True
        living = [bench.process for bench in self.benches if bench.process is not None]
        for process in living:
            process.terminate() if kill else process.stdin.close()
        for process in living:
            process.wait()


class Hosts:
    """The same on hosts, by GNU parallel, which starts `evo_sweep.sh --measure` for a few candidates at a time."""

    def __init__(self, options, candidates, answers):
        known, self.joblog = os.path.join(options.work, "known"), os.path.join(options.out, "joblog")
        shutil.copy(candidates.log.path, known)
        self.each, self.answers, self.log = options.each, answers, open(self.joblog, "a+")
        self.log.seek(0, os.SEEK_END)
        names = "FA_BENCH SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH SWEEP_GROUP".split()
        self.process = subprocess.Popen(
            ["parallel", "--will-cite", "--line-buffer", "--retries", "2", "--jobs", str(options.jobs),
             "--sshloginfile", options.hosts, "--workdir", os.getcwd(), "--basefile", known,
             *(word for name in names for word in ("--env", name)), "--joblog", f"+{self.joblog}",
             "CUDA_VISIBLE_DEVICES=$(({%} - 1))", "scripts/evo_sweep.sh", "--measure", options.kernel, "{}", known,
             *options.options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # torn: its job has failed
                self.answers.put(json.loads(line))
        self.answers.put(None)

    def feed(self, batch):
        with contextlib.suppress(OSError):  # every host is gone: the end of the output says so
            for at in range(0, len(batch), self.each):
                print(*batch[at : at + self.each], file=self.process.stdin, flush=True)

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def look(self, waiting):
        """A job that has failed on every try has no answer, but a line in GNU parallel's log."""
        for line in self.log.readlines():
            *_, code, signalled, command = line.split("\t", 8)
            if (code, signalled) != ("0", "0"):
                for knobs in waiting.intersection(re.findall("[a-z0-9=,]+", command.replace("\\", ""))):
                    self.answers.put(lost(knobs))

    def end(self, kill):
        self.close()
        if kill:
            self.process.terminate()
        self.process.wait()


class Sweep:
    def __init__(self, options):
        self.options, self.log = options, Log(os.path.join(options.out, "leaderboard.jsonl"))
        self.candidates = Candidates(options.kernel, options.options, self.log, options.prune, options.gpu_facts)
        self.proposer, self.answers = proposer_of(options.strategy, options.space, options.seed), queue.SimpleQueue()
        self.waiting, self.results, self.lost, self.best = set(), [], [], None
        self.handed = self.measured = self.cold = 0
        self.more, self.parent = True, os.getppid()

    def run(self):
        killed = True
        with self.log.locked():
            open(self.log.path, "ab").close()
            bad = self.log.mend()
        if bad:
            say(f"{bad} corrupt line(s) of {self.log.path} set aside in {self.log.path}.corrupt")
        if self.options.hosts:
            self.workers = Hosts(self.options, self.candidates, self.answers)
        else:
            gpus = self.options.gpus.split(",") if self.options.gpus else [None]
            self.workers = Here(self.options.pool, self.candidates, self.answers, gpus, self.options.probe)
        self.began = self.ended = time.time()
        try:
            self.search()
            killed = False
        finally:
            self.tell()
            self.workers.end(killed)
        with open(os.path.join(self.options.work, "tried"), "w") as file:
            json.dump(self.results, file)

    def search(self):
        self.hand_out(self.options.pool * 2)
        while self.waiting:
            lines = []
            try:
                for answer in self.next_answers():
                    lines += self.take(answer)
            finally:
                if lines:
                    self.log.append(lines)

    def next_answers(self):
        """Those that have come, so that their lines are written at once; waits a second for the first."""
        if os.getppid() != self.parent:
            sys.exit(1)  # the script is gone
        for _ in range(max(1, self.answers.qsize())):
            try:
                answer = self.answers.get(timeout=1)
            except queue.Empty:
                self.workers.look(self.waiting)
                return
            if isinstance(answer, Refusal):
                raise answer
            if answer is None:  # the hosts are gone
                self.more = False
            yield from [answer] if answer else map(lost, sorted(self.waiting))

    def hand_out(self, count):
        options = self.options
        count = min(count, options.budget - self.handed)
        batch = self.proposer.propose(count)
        # A search starts beside the tile that the registry would take.
        if self.handed == 0 and options.strategy in ("evo", "tpe") and options.default_tile:
            batch = list(dict.fromkeys([options.default_tile, *batch]))[:count]
        for knobs in batch:
            self.proposer.tell({"knobs": knobs, "status": "pending"})
            self.waiting.add(knobs)
        self.workers.feed(batch)
        self.handed += len(batch)
        if len(batch) < count or self.handed == options.budget:
            self.stop()

    def stop(self):
        self.more = False
        self.workers.close()

    def take(self, answer):
        """What a worker answered; gives the line for the log, if it is one."""
        knobs, lines, pool, minutes = answer["knobs"], [], self.options.pool, self.options.minutes
        if knobs not in self.waiting:
            return []  # its first worker had answered before it was killed
        self.waiting.remove(knobs)
        if "lost" in answer:
            say(f"left out: {answer['lost']}")
            self.lost.append(knobs)
        elif not answer.get("known") and answer["status"] != "pruned":
            lines = [json.dumps(answer, separators=(",", ":"))]
            self.measured += 1
            self.cold += answer["cache_hit"] is False
        result = {name: answer.get(name) for name in ("key", "knobs", "status", "p50_us", "loosened", "source_sha256")}
        result["status"] = result["status"] or "not_run"
        if result["status"] == "pass" and result["p50_us"] is not None:
            if self.best is None or result["p50_us"] < self.best["p50_us"]:
                self.best, self.candidates.best_us = result, result["p50_us"]
        self.results.append(result)
        self.proposer.tell(result)
        self.ended = time.time()
        if sys.stderr.isatty() or len(self.results) % pool == 0 or not self.waiting:
            self.show()
        if self.more and minutes and self.ended - self.began >= minutes * 60:
            self.stop()
        elif self.more and len(self.waiting) <= pool + pool // 2:
            self.hand_out((pool + 1) // 2)
        return lines

    def show(self):
        done, budget, elapsed = len(self.results), self.options.budget, int(time.time() - self.began) + 1
        best = f"best {round(self.best['p50_us'], 2):.8g} us {self.best['knobs']}" if self.best else "no time yet"
        if not sys.stderr.isatty():
            print(f"{done}/{budget} candidates, {self.measured} measured, {best}, {elapsed} s", file=sys.stderr)
            return
        left = (budget - done) * elapsed // done
        if self.options.minutes:
            left = int(max(0, min(left, self.options.minutes * 60 - elapsed)))
        text = f"\r\033[K[{'#' * (done * 30 // budget):30}] {done}/{budget}  {self.measured} measured  {best}"
        print(f"{text}  ETA {left // 60}:{left % 60:02}", end="", file=sys.stderr, flush=True)

    def tell(self):
        """What the sweep did, once, however it ends: first candidate to last result."""
        if not self.results:
            return
        options, seconds = self.options, self.ended - self.began
        status = dict(sorted(collections.Counter(result["status"] for result in self.results).items()))
        told = {
            "kernel": options.kernel, "group": self.candidates.group, "strategy": options.strategy,
            "seed": options.seed, "pool": options.pool, "options": " ".join(options.options),
            "budget": options.budget, "candidates": len(self.results), "measured": self.measured,
            "compiled_cold": self.cold, "status": status, "seconds": round(seconds, 2),
            "per_second": round(len(self.results) / max(seconds, 0.01), 2), "lost": self.lost, "git": options.git,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }  # fmt: skip
        try:
            with open(os.path.join(options.out, "sweeps.jsonl"), "a") as file:
                print(json.dumps(told, separators=(",", ":")), file=file)
        except OSError:
            say(f"cannot append to {options.out}/sweeps.jsonl")
        if sys.stderr.isatty():
            print(file=sys.stderr)
        if self.candidates.gpu == "CPU emulator":
            print(f"NOT-RUN: times (no GPU here); {self.measured} candidates compiled and checked on the emulator")
        counts = ", ".join(f"{name} {count}" for name, count in status.items())
        rate = f"{told['seconds']} s, {told['per_second']} candidates per second, {self.cold} compiled anew"
        print(f"{counts}; {self.measured} measured in {rate}", flush=True)


def measure(kernel, batch, log, *options):
    """A few candidates, on a host of GNU parallel."""
    batch, answers = batch.split(), queue.SimpleQueue()
    workers = Here(len(batch), Candidates(kernel, options, Log(log)), answers)
    workers.feed(batch)
    for _ in batch:
        print(json.dumps(answers.get(), separators=(",", ":")), flush=True)
    workers.end(False)


def parse_arguments(words):
    parser = argparse.ArgumentParser()
    for name in "kernel strategy gpus hosts prune default-tile probe git out work".split():
        parser.add_argument(f"--{name}")
    for name in "seed budget pool jobs each".split():
        parser.add_argument(f"--{name}", type=int)
    for name in "space gpu-facts".split():
        parser.add_argument(f"--{name}", type=json.loads)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("options", nargs="*")
    return parser.parse_args(words)


def stop(number, _):
    for again in (signal.SIGTERM, signal.SIGINT):  # timeout(1) sends its signal twice
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)


def main(action, *words):
    if action == "measure":
        measure(*words)
    elif action == "append":
        Log(*words).append(sys.stdin.read().splitlines())
    elif action == "propose":
        options = parse_arguments(words)
        print("\n".join(proposer_of(options.strategy, options.space, options.seed).propose(options.budget)))
    else:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        Sweep(parse_arguments(words)).run()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refusal as refusal:
        say(refusal.args[1])
        sys.exit(refusal.args[0])
    except OSError as error:
        say(f"cannot write {error.filename}: {error.strerror}")
        sys.exit(6)
