#!/usr/bin/env python3
"""The search of scripts/evo_sweep.sh. One process proposes candidates, feeds all workers and writes the log.

Compilers take candidates in turn, answer what is known or does not compile, and hand the rest to the runners of the
GPUs. Each is a thread here and a fa_bench that lives as long as the sweep: a process, and on a GPU a context, for
every candidate would cost more than its measurement. On hosts GNU parallel starts a process for each candidate.

    sweep.py search OPTIONS -- FA_BENCH-OPTIONS      sweep.py measure KERNEL KNOBS LOG FA_BENCH-OPTIONS
    sweep.py propose OPTIONS                         sweep.py append LOG <LINES
"""

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

from candidate import Bench, Candidates, Log, Refusal, parse
from propose import Proposer

RUNNERS_PER_GPU = 4  # one is timed while the others load and check


def say(text):
    """Below the progress line of a terminal."""
    print("\n" * sys.stderr.isatty() + f"evo_sweep.sh: {text}", file=sys.stderr, flush=True)


def short(number):
    return f"{number:.2f}".rstrip("0").rstrip(".")


class Here:
    """The workers of this machine."""

    def __init__(self, options, candidates, answers):
        self.candidates, self.answers, self.options = candidates, answers, options
        self.todo, self.ready, self.benches = queue.SimpleQueue(), queue.SimpleQueue(), []
        gpus = options.gpus.split(",") if options.gpus else [None]
        each = min(-(-options.pool // len(gpus)), RUNNERS_PER_GPU)
        if candidates.gpu == "CPU emulator":
            gpus, each = [None], options.pool
        # Each check gets its share of the cores: threads of several checks that spin for one another only take turns.
        os.environ.setdefault("OMP_NUM_THREADS", str(-(-len(os.sched_getaffinity(0)) // (each * len(gpus)))))
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.feed, self.close = self.todo.put, lambda: None
        for gpu in gpus * each:
            environment = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
            self.begin(self.run, candidates.runner(**environment), gpu)
        for _ in range(options.pool):
            self.begin(self.compile, candidates.compiler())

    def begin(self, work, bench, *more):
        self.benches.append(bench)
        threading.Thread(target=work, args=(bench, *more), daemon=True).start()

    def compile(self, bench):
        while True:
            answer, work = self.candidates.compile(bench, self.todo.get())
            (self.ready if work else self.answers).put(work or answer)

    def run(self, bench, gpu):
        if self.candidates.gpu != "CPU emulator":
            self.warm_up(bench, gpu)
        while True:
            self.answers.put(self.candidates.run(bench, *self.ready.get()))

    def warm_up(self, bench, gpu):
        """The first use of a GPU by a process takes up to a second: it happens while the first candidates compile."""
        record = parse(bench.ask(self.options.probe) or b"") or {}
        if record.get("status") == "not_run":
            self.answers.put(Refusal(4, f"not run: {record['reason']}"))
        elif record.get("device") and record["device"]["name"] != self.candidates.gpu:
            self.answers.put(Refusal(4, f"GPU {gpu} is no {self.candidates.gpu}"))

    def end(self, kill):
        Bench.closing = True
        living = [bench.process for bench in self.benches if bench.process is not None]
        for process in living:
            process.terminate() if kill else process.stdin.close()
        for process in living:
            process.wait()


class Hosts:
    """The same on hosts, by GNU parallel, which starts `evo_sweep.sh --measure` for each candidate."""

    def __init__(self, options, candidates, answers, waiting):
        known, self.joblog = os.path.join(options.work, "known"), os.path.join(options.out, "joblog")
        shutil.copy(candidates.log.path, known)
        self.answers, self.waiting, self.seen = answers, waiting, 0
        if os.path.exists(self.joblog):
            self.seen = os.path.getsize(self.joblog)
        names = "FA_BENCH SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH SWEEP_GROUP".split()
        self.process = subprocess.Popen(
            ["parallel", "--will-cite", "--line-buffer", "--retries", "2", "--jobs", str(options.jobs),
             "--sshloginfile", options.hosts, "--workdir", os.getcwd(), "--basefile", known,
             *(word for name in names for word in ("--env", name)), "--joblog", f"+{self.joblog}",
             "CUDA_VISIBLE_DEVICES=$(({%} - 1))", "scripts/evo_sweep.sh", "--measure", options.kernel, "{}", known,
             *options.options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                self.answers.put(json.loads(line))
            except ValueError:
                pass  # torn: its job has failed
        self.answers.put(None)

    def feed(self, knobs):
        try:
            self.process.stdin.write(f"{knobs}\n".encode())
            self.process.stdin.flush()
        except OSError:
            pass  # every host is gone: the end of its output says so

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def look(self):
        """A job that has failed on every try has no answer, but a line in GNU parallel's log."""
        if not os.path.exists(self.joblog):
            return
        with open(self.joblog) as file:
            file.seek(self.seen)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break
                self.seen += len(line)
                columns = line.rstrip("\n").split("\t", 8)
                if len(columns) == 9 and columns[6:8] != ["0", "0"]:
                    words = columns[8].replace("\\", "").split()
                    for knobs in set(words) & self.waiting:
                        self.answers.put({"knobs": knobs, "lost": f"no worker answered for {knobs}"})

    def end(self, kill):
        self.close()
        if kill:
            self.process.terminate()
        self.process.wait()


class Sweep:
    def __init__(self, options):
        self.options, self.log = options, Log(os.path.join(options.out, "leaderboard.jsonl"))
        prune = None if options.prune == "none" else options.prune
        self.candidates = Candidates(options.kernel, options.options, self.log, prune, options.gpu_facts)
        self.proposer = make_proposer(options)
        self.answers, self.waiting = queue.SimpleQueue(), set()
        self.results, self.lost, self.best = [], [], None
        self.handed = self.measured = self.cold = 0
        self.more, self.parent = True, os.getppid()

    def open_log(self):
        try:
            with self.log.locked():
                with open(self.log.path, "ab"):
                    pass
                bad = self.log.mend()
        except OSError as error:
            raise Refusal(6, f"cannot write in {self.options.out}: {error.strerror}") from None
        if bad:
            say(f"{bad} corrupt line(s) of {self.log.path} set aside in {self.log.path}.corrupt")

    def time_is_up(self):
        return self.options.minutes and time.time() - self.began >= self.options.minutes * 60

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
        for knobs in batch:
            self.workers.feed(knobs)
        self.handed += len(batch)
        if len(batch) < count or self.handed == options.budget:
            self.stop()

    def stop(self):
        self.more = False
        self.workers.close()

    def take(self, answer):
        """What a worker answered: the line for the log, if it is one."""
        knobs, line = answer["knobs"], None
        if knobs not in self.waiting:
            return None  # its first worker had answered before it was killed
        self.waiting.remove(knobs)
        if "lost" in answer:
            say(f"left out: {answer['lost']}")
            self.lost.append(knobs)
        elif not answer.get("known") and answer["status"] != "pruned":
            line = json.dumps(answer, separators=(",", ":"), allow_nan=False)
            self.measured += 1
            self.cold += answer["cache_hit"] is False
        kept = ("key", "knobs", "p50_us", "loosened", "source_sha256")
        result = {"status": answer.get("status", "not_run")} | {name: answer.get(name) for name in kept}
        if result["status"] == "pass" and result["p50_us"] is not None:
            if self.best is None or result["p50_us"] < self.best["p50_us"]:
                self.best, self.candidates.best_us = result, result["p50_us"]
        self.results.append(result)
        self.proposer.tell(result)
        self.ended = time.time()
        if sys.stderr.isatty() or len(self.results) % self.options.pool == 0 or self.is_last():
            self.show()
        if self.more and self.time_is_up():
            self.stop()
        elif self.more and len(self.waiting) <= self.options.pool + self.options.pool // 2:
            self.hand_out((self.options.pool + 1) // 2)
        return line

    def is_last(self):
        return len(self.results) == self.options.budget

    def show(self):
        done, budget, elapsed = len(self.results), self.options.budget, int(time.time() - self.began) + 1
        best = f"best {short(self.best['p50_us'])} us {self.best['knobs']}" if self.best else "no time yet"
        if not sys.stderr.isatty():
            print(f"{done}/{budget} candidates, {self.measured} measured, {best}, {elapsed} s", file=sys.stderr)
            return
        left = (budget - done) * elapsed // max(done, 1)
        if self.options.minutes:
            left = int(max(0, min(left, self.options.minutes * 60 - elapsed)))
        text = f"\r\033[K[{'#' * (done * 30 // budget):30}] {done}/{budget}  {self.measured} measured  {best}"
        print(f"{text}  ETA {left // 60}:{left % 60:02}", end="", file=sys.stderr, flush=True)

    def next_answers(self):
        """At least one, and those that came meanwhile, so that their lines are written at once."""
        while self.answers.empty():
            try:
                yield self.answers.get(timeout=1)
                break
            except queue.Empty:
                if os.getppid() != self.parent:
                    raise SystemExit(1) from None  # the script is gone
                if self.options.hosts:
                    self.workers.look()
        while not self.answers.empty():
            yield self.answers.get()

    def search(self):
        if self.options.hosts:
            self.workers = Hosts(self.options, self.candidates, self.answers, self.waiting)
        else:
            self.workers = Here(self.options, self.candidates, self.answers)
        self.hand_out(self.options.pool * 2)
        while self.waiting:
            lines = []
            try:
                for answer in self.next_answers():
                    if isinstance(answer, Refusal):
                        raise answer
                    if answer is None:  # the hosts are gone
                        answers = [{"knobs": k, "lost": f"no worker answered for {k}"} for k in sorted(self.waiting)]
                        self.more = False
                    else:
                        answers = [answer]
                    lines += [line for line in map(self.take, answers) if line]
            finally:
                if lines:
                    self.log.append(lines)

    def run(self):
        killed = True
        self.began = self.ended = time.time()
        try:
            self.search()
            killed = False
        finally:
            self.tell()
            self.workers.end(killed)
        with open(os.path.join(self.options.work, "tried"), "w") as file:
            json.dump(self.results, file)

    def tell(self):
        """What the sweep did, once, however it ends: first candidate to last result."""
        if not self.results:
            return
        options, seconds, status = self.options, self.ended - self.began, {}
        for result in sorted(self.results, key=lambda r: r["status"]):
            status[result["status"]] = status.get(result["status"], 0) + 1
        told = {
            "kernel": options.kernel, "group": self.candidates.group, "strategy": options.strategy,
            "seed": options.seed, "pool": options.pool, "options": " ".join(options.options),
            "budget": options.budget, "candidates": len(self.results), "measured": self.measured,
            "compiled_cold": self.cold, "status": status, "seconds": round(seconds, 2),
            "per_second": round(len(self.results) / max(seconds, 0.01), 2), "lost": self.lost, "git": options.git,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }  # fmt: skip
        if sys.stderr.isatty():
            print(file=sys.stderr)
        try:
            with open(os.path.join(options.out, "sweeps.jsonl"), "a") as file:
                file.write(json.dumps(told, separators=(",", ":")) + "\n")
        except OSError:
            say(f"cannot append to {options.out}/sweeps.jsonl")
        if self.candidates.gpu == "CPU emulator":
            print(f"NOT-RUN: times (no GPU here); {self.measured} candidates compiled and checked on the emulator")
        counts = ", ".join(f"{name} {count}" for name, count in status.items())
        rate = f"{told['seconds']} s, {told['per_second']} candidates per second, {self.cold} compiled anew"
        print(f"{counts}; {self.measured} measured in {rate}", flush=True)


def make_proposer(options):
    if options.strategy == "tpe":
        import tpe

        return tpe.Proposer(options.space, options.seed)
    return Proposer(options.space, options.strategy, options.seed)


def measure(kernel, knobs, log, *options):
    """One candidate, on a host of GNU parallel."""
    candidates = Candidates(kernel, list(options), Log(log))
    compiler, runner = candidates.compiler(), candidates.runner()
    answer, work = candidates.compile(compiler, knobs)
    print(json.dumps(answer or candidates.run(runner, *work)), flush=True)
    compiler.end()
    runner.end()


def parse_arguments(words):
    parser = argparse.ArgumentParser()
    for name, kind in {
        "kernel": str, "space": json.loads, "strategy": str, "seed": int, "budget": int, "pool": int, "jobs": int,
        "minutes": float, "gpus": str, "hosts": str, "prune": str, "gpu-facts": json.loads, "default-tile": str,
        "probe": str, "git": str, "out": str, "work": str,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=kind)
    parser.add_argument("options", nargs="*")
    return parser.parse_args(words)


def stop(number, _):
    for again in (signal.SIGTERM, signal.SIGINT):  # timeout(1) sends its signal twice
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    action, words = sys.argv[1], sys.argv[2:]
    if action == "measure":
        measure(*words)
    elif action == "append":
        Log(words[0]).append(sys.stdin.read().splitlines())
    elif action == "propose":
        options = parse_arguments(words)
        print("\n".join(make_proposer(options).propose(options.budget)))
    else:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        sweep = Sweep(parse_arguments(words))
        sweep.open_log()
        sweep.run()


if __name__ == "__main__":
    try:
        main()
    except Refusal as refusal:
        say(refusal.args[1])
        sys.exit(refusal.args[0])
    except OSError as error:
        say(error)
        sys.exit(6)
