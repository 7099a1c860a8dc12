"""The engine of scripts/evo_sweep.sh. One process proposes candidates, feeds all workers, and writes the log and the
leaderboard.

Compilers take candidates in turn, answer what is known or does not compile, and hand the rest to the runners of the
GPUs. Each is a thread here and a fa_bench that lives as long as the sweep: a process, and on a GPU a context, for
every candidate would cost more than its measurement. On hosts GNU parallel starts such workers for a few candidates at
a time.

    sweep.py search OPTIONS -- FA_BENCH-OPTIONS      sweep.py measure TASK "KNOBS..."
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from board import Board, fastest_first, print_best
from candidate import SHARE, Candidates, Log, Place, Refusal, microseconds, parse_record, register_limits, say
from propose import proposer_of
from subject import EMULATOR, ROOT, Gpu, Subject, is_emulator_wanted, kernel_rows, visible

SCRIPT = os.path.join(ROOT, "scripts/evo_sweep.sh")
# The fastest tiles, which are tried with register limits: so many once that part of the budget is handed out.
LIMITED_TILES = ((1 / 2, 2), (3 / 4, 4))
RUNNERS_PER_GPU = 4  # one is timed while the others load and check


def runners_each(pool, gpus, emulated):
    return pool if emulated else min(-(-pool // gpus), RUNNERS_PER_GPU)


def share_cores(pool, gpus, emulated):
    """Each check gets its share of the cores: threads of several checks that spin for one another only take turns."""
    at_once = runners_each(pool, gpus, emulated) * gpus
    SHARE.update(OMP_NUM_THREADS=str(-(-len(os.sched_getaffinity(0)) // at_once)), OMP_WAIT_POLICY="passive")


def on_gpu(gpu):
    return {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {}


def lost(knobs):
    return {"knobs": knobs, "lost": f"no worker answered for {knobs}"}


class Here:
    """The workers of this machine. Runners begin at once, so that their contexts are made while the sweep gets ready,
    those of a GPU one after the other; each asks its GPU the line of options in `probe` first. `first` is a runner that
    has its context."""

    def __init__(self, candidates, pool, gpus=(None,), emulated=False, probe=None, first=None):
        self.candidates, self.pool, self.probe, self.answers = candidates, pool, probe, queue.SimpleQueue()
        self.todo, self.ready, self.benches = queue.PriorityQueue(), queue.SimpleQueue(), []
        # The first candidate runs before all others, which are stopped then where they are slower.
        self.first, self.first_ran = threading.Lock(), threading.Event()
        if emulated:
            self.first_ran.set()
        # When a runner had its context; when a job began and ended.
        self.contexts, self.spent = [], {"compile": [], "run": []}
        for gpu, turn in [(gpu, threading.Lock()) for gpu in gpus]:
            for _ in range(runners_each(pool, len(gpus), emulated)):
                bench, first = first or candidates.runner(**on_gpu(gpu)), None
                self.begin(bench, self.ready, "run", gpu, turn)

    def start(self):
        """The compilers; from now on candidates have a place."""
        for _ in range(self.pool):
            self.begin(self.candidates.compiler(), self.todo, "compile")

    def begin(self, *what):
        self.benches.append(what[0])
        threading.Thread(target=self.serve, args=what, daemon=True).start()

    def serve(self, bench, jobs, kind, gpu=None, turn=None):
        if turn:
            with turn:
                self.warm_up(bench, gpu)
            self.contexts.append(time.time())
        while True:
            job, ask = jobs.get()[-1], getattr(self.candidates, kind)
            if kind == "run" and not self.first.acquire(blocking=False):
                self.first_ran.wait()
            began = time.time()
            try:
                outcome = ask(bench, *job)
            except Exception as error:  # of any kind: each candidate has an answer
                outcome = {"knobs": job[0], "lost": str(error)}
            self.spent[kind].append((began, time.time()))
            self.note(kind, outcome)
            self.ready.put([outcome]) if isinstance(outcome, tuple) else self.answers.put(outcome)

    def note(self, kind, outcome):
        if isinstance(outcome, dict) and outcome.get("status") == "pass" and outcome.get("p50_us") is not None:
            self.candidates.best_us = min(outcome["p50_us"], self.candidates.best_us or outcome["p50_us"])
        if kind == "run":
            self.first_ran.set()

    def warm_up(self, bench, gpu):
        """The first use of a GPU by a process takes up to a second: it happens while the first candidates compile."""
        if not self.probe or bench.process is not None:
            return
        record = parse_record(bench.ask(self.probe) or b"") or {}
        if record.get("status") == "not_run":
            self.answers.put(Refusal(4, f"not run: {record['reason']}"))
        elif record.get("device") and record["device"].get("name") != self.candidates.gpu:
            self.answers.put(Refusal(4, f"GPU {gpu} is no {self.candidates.gpu}"))

    def time_line(self, began, ended):
        """Seconds from the first candidate: when runners had their contexts, when the first and the last candidate was
        compiled; and the share of the time in which compilers and runners were at work."""
        compiled = [to - began for _, to in self.spent["compile"]]
        line = {"contexts": [at - began for at in sorted(self.contexts)], "compiled": [min(compiled), max(compiled)]}
        room = {"compile": self.pool, "run": len(self.benches) - self.pool}
        busy = {kind: sum(to - at for at, to in spans) / max(ended - began, 0.01) for kind, spans in self.spent.items()}
        return {"time_line_s": {name: [round(s, 2) for s in seconds] for name, seconds in line.items()},
                "busy": {kind: round(busy[kind] / room[kind], 2) for kind in room}}  # fmt: skip

    def feed(self, batch, rank=0):
        for at, knobs in enumerate(batch):
            self.todo.put((rank, at, (knobs,)))

    def close(self):
        pass

    def look(self, waiting):
        pass

    def end(self, kill):
        for bench in self.benches:
            bench.closing = True
        living = [bench.process for bench in self.benches if bench.process is not None]
        for process in living:
            process.terminate() if kill else process.stdin.close()
        for process in living:
            process.wait()


def hosts_of(path):
    """The lines of --sshloginfile as words: "HOST", "CORES/HOST", a whole ssh command, or ":" for this machine. They
    are asked before a sweep begins."""
    with open(path, errors="replace") as file:
        hosts = [words for words in (line.split("#")[0].split() for line in file) if words]
    if not hosts:
        raise Refusal(2, f"--sshloginfile: no host in {path}")
    for tool in "parallel", "ssh", "rsync":
        if not shutil.which(tool) and (tool == "parallel" or hosts != [[":"]]):
            raise Refusal(4, f"NOT-RUN: no {tool}, which --sshloginfile needs here and on the hosts")
    for first, *more in hosts:
        ssh = [re.sub("^[0-9]+/", "", first), *more]
        if ssh == [":"]:
            continue
        name = ssh[-1]
        ssh = ssh if more else ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", name]
        for command, fault in [
            ("true", f"does not answer: {' '.join(ssh)} true"), ("command -v rsync", "has no rsync"),
            (f"test -x {shlex.quote(SCRIPT)}", f"has no {SCRIPT}"),
        ]:  # fmt: skip
            if subprocess.run(["env", *ssh, command], stdin=subprocess.DEVNULL, capture_output=True).returncode:
                raise Refusal(4, f"NOT-RUN: host {name} {fault}")
    return hosts


class Hosts:
    """Workers on hosts, by GNU parallel, which starts `evo_sweep.sh --measure` for a few candidates at a time."""

    def __init__(self, options, candidates):
        self.candidates = candidates
        self.work, self.joblog = tempfile.TemporaryDirectory(), os.path.join(options.out, "joblog")
        known, task = (os.path.join(self.work.name, name) for name in ("known", "task"))
        shutil.copy(candidates.log.path, known)
        with open(task, "w") as file:
            json.dump([candidates.kernel, candidates.options, known, candidates.place], file)
        self.each, self.answers, self.log = options.each, queue.SimpleQueue(), open(self.joblog, "a+")
        self.log.seek(0, os.SEEK_END)
        self.process = subprocess.Popen(
            ["parallel", "--will-cite", "--line-buffer", "--retries", "2", "--jobs", str(options.jobs),
             "--sshloginfile", options.sshloginfile, "--workdir", ROOT, "--basefile", known, "--basefile", task,
             "--env", "FA_BENCH", "--joblog", f"+{self.joblog}",
             "CUDA_VISIBLE_DEVICES=$(({%} - 1))", shlex.quote(SCRIPT), "--measure", task, "{}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "FA_BENCH": os.path.abspath(os.environ["FA_BENCH"])},
        )  # fmt: skip
        threading.Thread(target=self.read, daemon=True).start()

    def start(self):
        pass

    def time_line(self, began, ended):
        return {}  # each host has its own

    def read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # torn: its job has failed
                self.answers.put(json.loads(line))
        self.answers.put(None)

    def feed(self, batch, _):
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
        self.work.cleanup()


class Sweep:
    def __init__(self, options, subject, gpu, proposer, log, workers):
        self.options, self.subject, self.gpu, self.proposer, self.log = options, subject, gpu, proposer, log
        self.workers, self.candidates = workers, workers.candidates
        self.answers, self.budget = workers.answers, min(options.budget, subject.points)
        self.waiting, self.results, self.lost, self.best, self.limited = set(), [], [], None, set()
        self.handed = self.measured = self.cold = 0
        self.more = True
        # Candidates beside those that are compiled: fewer where the next ones follow from the answers.
        self.learns = options.strategy in ("evo", "tpe") and not options.sshloginfile
        self.lead = max(1, options.pool // 2 if self.learns else options.pool)

    def run(self):
        killed = True
        self.began = self.ended = self.found = time.time()
        self.workers.start()
        try:
            self.search()
            killed = False
        finally:
            self.tell()
            self.workers.end(killed)

    def search(self):
        self.hand_out(self.options.pool + self.lead)
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
        count = min(count, self.options.budget - self.handed)
        limited = self.limits()[:count]
        batch = self.proposer.propose(count - len(limited))
        # Beside the tile that the registry would take: a search starts there, and slower ones are stopped early.
        if self.handed == 0 and self.subject.default_tile:
            batch = list(dict.fromkeys([self.subject.default_tile, *batch]))[:count]
        for knobs in batch:
            self.proposer.tell({"knobs": knobs, "status": "pending"})
        self.limited.update(limited)
        # What was proposed last knows most. Where nothing is learned the tiles with limits alone follow from others.
        self.workers.feed(limited, -self.handed - 1)
        self.workers.feed(batch, -self.handed if self.learns else self.handed)
        batch = limited + batch
        self.waiting.update(batch)
        self.handed += len(batch)
        self.budget = max(self.budget, self.handed)
        if self.handed == self.options.budget or not self.waiting or (len(batch) < count and not self.may_wait()):
            self.stop()

    def may_wait(self):
        """For answers that register limits follow from. GNU parallel begins its last jobs when its input ends."""
        return self.derives() and not self.options.sshloginfile

    def derives(self):
        return self.subject.derives_maxreg and not self.gpu.emulated

    def limits(self):
        """The fastest tiles with register limits. They are beside the strategy, which is not told of them."""
        most = max([tiles for part, tiles in LIMITED_TILES if self.handed >= int(self.budget * part)], default=0)
        if not self.derives() or most == 0:
            return []
        tiles, found = [result for result in self.results if "maxreg=" not in result["knobs"]], []
        for tile in fastest_first(tiles)[:most]:
            for limit in register_limits(tile):
                knobs = f"{tile['knobs']},maxreg={limit}"
                self.candidates.blocks[knobs] = tile["blocks_per_sm"]
                found += [knobs] if knobs not in self.limited else []
        return found

    def stop(self):
        self.more = False
        self.workers.close()

    def take(self, answer):
        """What a worker answered; gives the line for the log, if it is one."""
        knobs, lines, pool = answer["knobs"], [], self.options.pool
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
        kept = ("key", "knobs", "status", "p50_us", "loosened", "source_sha256", "at_least_us",
                "registers", "blocks_per_sm", "config")
        result = {name: answer.get(name) for name in kept}
        result["status"] = result["status"] or "not_run"
        if result["status"] == "pass" and result["p50_us"] is not None:
            if self.best is None or result["p50_us"] < self.best["p50_us"]:
                self.best, self.found = result, time.time()
        self.results.append(result)
        # A loser guides the search by what it takes at least; no board has it.
        beaten = {"status": "pass", "p50_us": result["at_least_us"]} if result["status"] == "beaten" else {}
        if knobs not in self.limited:
            cold_s = answer.get("compile_s") if answer.get("cache_hit") is False else None
            self.proposer.tell({**result, **beaten, "cold_s": cold_s})
        self.ended = time.time()
        if sys.stderr.isatty() or len(self.results) % pool == 0 or not self.waiting:
            self.show()
        if self.more and self.ended >= self.options.end:
            self.stop()
        elif self.more and len(self.waiting) <= pool + self.lead // 2:
            self.hand_out((self.lead + 1) // 2)
        return lines

    def show(self):
        done, budget, elapsed = len(self.results), self.budget, int(time.time() - self.began) + 1
        best = f"best {microseconds(self.best['p50_us'])} {self.best['knobs']}" if self.best else "no time yet"
        if not sys.stderr.isatty():
            print(f"{done}/{budget} candidates, {self.measured} measured, {best}, {elapsed} s", file=sys.stderr)
            return
        left = int(max(0, min((budget - done) * elapsed // done, self.options.end - time.time())))
        text = f"\r\033[K[{'#' * (done * 30 // budget):30}] {done}/{budget}  {self.measured} measured  {best}"
        print(f"{text}  ETA {left // 60}:{left % 60:02}", end="", file=sys.stderr, flush=True)

    def tell(self):
        """What the sweep did, once, however it ends: first candidate to last result."""
        if not self.results:
            return
        options, candidates, seconds = self.options, self.candidates, self.ended - self.began
        status = dict(sorted(collections.Counter(result["status"] for result in self.results).items()))
        told = {
            "kernel": candidates.kernel, "group": candidates.group, "strategy": options.strategy,
            "seed": options.seed, "pool": options.pool, "options": " ".join(candidates.options),
            "budget": self.budget, "candidates": len(self.results), "measured": self.measured,
            "compiled_cold": self.cold, "status": status, "seconds": round(seconds, 2),
            "per_second": round(len(self.results) / max(seconds, 0.01), 2), "lost": self.lost,
            "space": self.subject.points, "start_s": round(self.began - options.began, 2),
            "best_s": round(self.found - self.began, 2), **self.workers.time_line(self.began, self.ended),
            "git": self.gpu.git, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }  # fmt: skip
        try:
            with open(os.path.join(options.out, "sweeps.jsonl"), "a") as file:
                print(json.dumps(told, separators=(",", ":")), file=file)
        except OSError:
            say(f"cannot append to {options.out}/sweeps.jsonl")
        if sys.stderr.isatty():
            print(file=sys.stderr)
        if self.gpu.emulated:
            print(f"NOT-RUN: times (no GPU here); {self.measured} candidates compiled and checked on the emulator")
        counts = ", ".join(f"{name} {count}" for name, count in status.items())
        rate = f"{told['seconds']} s, {told['per_second']} candidates per second, {self.cold} compiled anew"
        print(f"{counts}; {self.measured} measured in {rate}", flush=True)


def settle(options):
    """The numbers that were not given. --pool: candidates on their way, by the hosts or the cores of this machine."""
    hosts = hosts_of(options.sshloginfile) if options.sshloginfile else []
    gpus = options.jobs * (len(hosts) or 1)
    wanted = 12 * gpus if hosts else len(os.sched_getaffinity(0))
    options.pool = options.pool or min(max(wanted, 2 * gpus), 16 * gpus)
    options.each = max(1, options.pool // (2 * gpus))  # candidates that a host takes at once, for each GPU
    options.budget = options.budget or (sys.maxsize if options.seconds else 64)
    options.end = time.time() + (options.seconds or float("inf"))


def search(options):
    """A sweep of each kernel, one after the other; the leaderboard is up to date after each."""
    options.began = time.time()
    settle(options)
    rows = kernel_rows()
    if options.source:
        kernels = [f"source:{os.path.realpath(options.source)}"]
    else:
        kernels = options.kernel.split(",") if options.kernel else [row["name"] for row in rows if row.get("default")]
    subjects = [Subject(kernel, options.options, rows) for kernel in kernels]
    proposers = [proposer_of(options.strategy, subject.space, options.seed) for subject in subjects]
    if options.dry_run:
        for subject, proposer in zip(subjects, proposers):
            print(*proposer.propose(min(options.budget, subject.points)), sep="\n")
        return
    candidates = [Candidates(subject.kernel, subject.explore, options.prune) for subject in subjects]
    first = None
    if not options.sshloginfile:
        share_cores(options.pool, options.jobs, is_emulator_wanted(options.options))
        first = candidates[0].runner(**on_gpu(visible(options.jobs)[0] if options.jobs > 1 else None))
    gpu = Gpu(next(row["name"] for row in rows if row["kind"] == "hand"), options.options, first, subjects[0].kernel)
    options.gpus = [None] if options.sshloginfile else gpu.numbers(options.jobs)

    def workers_for(ours, first=None):
        ours.gpu = gpu.name
        if options.sshloginfile:
            return Hosts(options, ours)
        probe = None if gpu.emulated else gpu.line(ours.kernel)
        return Here(ours, options.pool, options.gpus, gpu.emulated, probe, first)

    workers = workers_for(candidates[0], first) if first else None
    for subject, proposer in zip(subjects, proposers):
        subject.locate(gpu)
        proposer.start = subject.default_tile
    log = open_log(options, gpu)
    for subject, ours, proposer in zip(subjects, candidates, proposers):
        ours.settle(log, subject.place, gpu.facts)
        workers = workers or workers_for(ours)
        sweep = Sweep(options, subject, gpu, proposer, log, workers)
        sweep.run()
        workers, proven = None, time.time()
        if not gpu.emulated:
            Board(subject, ours, sweep.results, sweep.began, options.out).update()
            print(f"{subject.kernel}: proven and compared in {time.time() - proven:.1f} s", flush=True)
        if time.time() >= options.end:
            break
        options.began = time.time()
    print_best(options.out)


def open_log(options, gpu):
    options.out = options.out or os.path.join(ROOT, "evidence", gpu.folder)
    try:
        os.makedirs(options.out, exist_ok=True)
    except OSError:
        raise Refusal(6, f"cannot make {options.out}") from None
    log = Log(os.path.join(options.out, "leaderboard.jsonl"))
    with log.locked():
        if not os.path.exists(log.path) and os.path.exists(f"{log.path}.gz"):
            if subprocess.run(["gunzip", f"{log.path}.gz"], stderr=subprocess.DEVNULL).returncode:
                raise Refusal(6, f"cannot unpack {log.path}.gz")
        open(log.path, "ab").close()
        bad = log.mend()
    if bad:
        say(f"{bad} corrupt line(s) of {log.path} set aside in {log.path}.corrupt")
    return log


def measure(task, batch):
    """A few candidates, on a host of GNU parallel."""
    with open(task) as file:
        kernel, options, log, place = json.load(file)
    batch = batch.split()
    candidates = Candidates(kernel, options).settle(Log(log), Place(*place))
    emulated = candidates.gpu == EMULATOR
    share_cores(len(batch), 1, emulated)
    workers = Here(candidates, len(batch), emulated=emulated)
    workers.start()
    workers.feed(batch)
    for _ in batch:
        print(json.dumps(workers.answers.get(), separators=(",", ":")), flush=True)
    workers.end(False)


def parse_arguments(words):
    parser = argparse.ArgumentParser()
    for name in "kernel source sshloginfile out".split():
        parser.add_argument(f"--{name}")
    for name, default in ("strategy", "evo"), ("prune", "none"):
        parser.add_argument(f"--{name}", default=default)
    for name, default in ("seed", 1), ("budget", None), ("pool", None), ("jobs", 1):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("options", nargs="*")
    return parser.parse_args(words)


def stop(number, _):
    for again in (signal.SIGTERM, signal.SIGINT):  # timeout(1) sends its signal twice
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)


def main(action, *words):
    sys.stdout.reconfigure(errors="backslashreplace")
    if action == "search":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        search(parse_arguments(words))
    else:
        measure(*words)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Refusal as refusal:
        say(refusal.args[1])
        sys.exit(refusal.args[0])
    except OSError as error:
        say(f"cannot write {error.filename or 'to standard output'}: {error.strerror}")
        sys.exit(6)
