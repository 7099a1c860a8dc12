#!/usr/bin/env python3
"""A search from examples/plain.cu through scripts/evaluate.sh, with a list of rules where a model would propose.

usage: studies/search_by_rules.py [--json FILE] [--seconds S] [--seed N] [--jobs N] [--best FILE.cu]
                                  [--make "EDIT ..."] [-- options of evaluate.sh]

A candidate is plain.cu with a tile, a number of lanes for each row and some edits. A search goes from the best
candidate so far to its neighbours, which differ in one of these. Some edits are bad: they are wrong, race, do not
compile or cannot be launched, and must score 0. Scores are paired ratios over plain.cu as it stands. FILE gets the
best score after each evaluation. --make prints one candidate and evaluates nothing.
Without a GPU: -- --stages emulator --score emulator
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

ROOT = pathlib.Path(__file__).resolve().parent.parent
START = (ROOT / "examples/plain.cu").read_text()
PROBLEMS = """public emulator --batch 1 --heads 2 --seq 33 --dim 64 --causal
public gpu --batch 2 --heads 8 --seq 512 --dim 64
hidden gpu --batch 1 --heads 4 --kv-heads 2 --seq 300 --dim 64 --causal --seed 1009
"""
ENOUGH = 1.03  # of the best score: less is not taken for an improvement


def lanes(text, count):
    """Neighbouring lanes share a row: each has a part of the dimension, and partial dot products are added up."""
    dims = f"FA_DIM / {count}"
    lane = f"threadIdx.x % {count}"
    text = (text.replace("threads = FA_M,", f"threads = FA_M * {count},")
            .replace("row = tile * FA_M + threadIdx.x,", f"row = tile * FA_M + threadIdx.x / {count},")
            .replace("FA_M <= 1024,", f"FA_M * {count} <= 1024,")
            .replace("d < FA_DIM;", f"d < {dims};").replace("sum[FA_DIM]", f"sum[{dims}]")
            .replace("if (p.lse)", f"if (p.lse && {lane} == 0)"))
    for name in ("q", "k", "v", "o"):
        text = text.replace(f"*)p.{name} +", f"*)p.{name} + {lane} * ({dims}) +", 1)
    add = (f"        for (int other = 1; other < {count}; other *= 2)\n            s += __shfl_xor_sync("
           f"((1u << {count}) - 1) << (threadIdx.x % 32 / {count} * {count}), s, other);\n")
    return text.replace("        s *= p.scale;", add + "        s *= p.scale;")


def registers(text):
    """Q is read once, as floats."""
    size = text.split("sum[")[1].split("]")[0]
    read = f"    float q_r[{size}];\n    for (int d = 0; d < {size}; d++)\n        q_r[d] = __half2float(q[d]);\n"
    text = text.replace("    float m = NO_MAX,", read + "    float m = NO_MAX,")
    return text.replace("+= __half2float(q[d])", "+= q_r[d]")


def vector(text):
    """Rows of K and V are read 16 bytes at a time."""
    size = text.split("sum[")[1].split("]")[0]
    read = (f"        alignas(16) half k_r[{size}], v_r[{size}];\n        for (int d = 0; d < {size}; d += 8) {{\n"
            "            *(uint4 *)(k_r + d) = *(const uint4 *)(k + j * p.k_stride_s + d);\n"
            "            *(uint4 *)(v_r + d) = *(const uint4 *)(v + j * p.v_stride_s + d);\n        }\n")
    text = text.replace("        float s = 0.0f;", read + "        float s = 0.0f;")
    for name in ("k", "v"):
        text = text.replace(f"__half2float({name}[j * p.{name}_stride_s + d])", f"__half2float({name}_r[d])")
    return text


def skip(text):
    """The sums are scaled only when the maximum has moved."""
    size = text.split("sum[")[1].split("]")[0]
    scale = (f"        if (m_new > m) {{\n            l *= alpha;\n            for (int d = 0; d < {size}; d++)\n"
             "                sum[d] *= alpha;\n        }\n        l += weight;")
    return (text.replace("        l = l * alpha + weight;", scale)
            .replace("sum[d] = sum[d] * alpha + weight * ", "sum[d] += weight * "))


def race(text):
    """Bad: one element of K goes through shared memory, without a barrier."""
    share = "        __shared__ half first;\n        first = k[j * p.k_stride_s];\n"
    return text.replace("        float s = 0.0f;", share + "        float s = 0.0f * __half2float(first);")


def line(old, new):
    return lambda text: text.replace(old, new)


EDITS = {  # in the order in which they are made
    "registers": registers,
    "vector": vector,
    "skip": skip,
    "fast_exp": line("expf(", "__expf("),
    "unroll": line("    for (int j = 0;", '    _Pragma("unroll 4")\n    for (int j = 0;'),
    "bad_scale": line("s *= p.scale;", "s *= p.scale * 1.02f;"),
    "bad_rescale": line("l *= alpha;", ";"),  # alone it changes nothing: it needs `skip`
    "bad_name": line("m = NO_MAX,", "m = LOWEST,"),
    "bad_race": race,
}
TILES = {"m": (16, 32, 64, 128, 256, 4096), "lanes": (1, 2, 4, 8)}
FIRST = ("m=64", "lanes=1")


def source(state):
    knob = dict(word.split("=") for word in state if "=" in word)
    text = lanes(START, int(knob["lanes"])) if knob["lanes"] != "1" else START
    for name, edit in EDITS.items():
        if name in state:
            text = edit(text)
    return text.replace("// fa_bench: --m 64", f"// fa_bench: --m {knob['m']}")


def neighbours(state):
    for name, values in TILES.items():
        for value in values:
            yield tuple(f"{name}={value}" if word.startswith(name + "=") else word for word in state)
    for name in EDITS:
        yield tuple(word for word in state if word != name) if name in state else state + (name,)


class Search:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.random = random.Random(options.seed)
        self.seen, self.curve = {source(FIRST)}, []
        self.state, self.best = FIRST, 0.0
        self.start = time.monotonic()
        self.problems = self.folder / "problems"
        self.problems.write_text(PROBLEMS)
        if options.json:
            pathlib.Path(options.json).unlink(missing_ok=True)

    def propose(self):
        """A neighbour of the best whose source is new; none when all were tried."""
        near = list(neighbours(self.state))
        self.random.shuffle(near)
        for state in near:
            text = source(state)
            if text not in self.seen:
                self.seen.add(text)
                return state
        return None

    def evaluate(self, number, state):
        file = self.folder / f"candidate{number}.cu"
        file.write_text(source(state))
        more = self.options.more
        own = more[more.index("--"):] if "--" in more else ["--", "--max-time", "0.25", "--warmup-ms", "30"]
        command = [ROOT / "scripts/evaluate.sh", file, "--problems", self.problems, "--incumbent",
                   "examples/plain.cu", *more[:more.index("--") if "--" in more else None], *own]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return state, json.loads(done.stdout)

    def take(self, state, score):
        value = score["combined_score"]
        kept = value is not None and value > self.best * (ENOUGH if self.best else 1)
        if kept:
            self.state, self.best = state, value
            if self.options.best:
                pathlib.Path(self.options.best).write_text(source(state))
        row = {"n": len(self.curve) + 1, "seconds": round(time.monotonic() - self.start, 2), "edits": " ".join(state),
               "status": score["status"], "score": value, "best": self.best, "kept": kept,
               "feedback": score["text_feedback"][:160]}
        self.curve.append(row)
        print(row["n"], row["seconds"], "s", row["status"], value, "best", self.best, f"[{row['edits']}]", flush=True)
        return score

    def run(self):
        score = self.take(*self.evaluate(0, FIRST))
        with ThreadPoolExecutor(self.options.jobs) as pool:
            running, number = set(), 0
            while True:
                while len(running) < self.options.jobs and time.monotonic() - self.start < self.options.seconds:
                    state = self.propose()
                    if state is None:
                        break
                    number += 1
                    running.add(pool.submit(self.evaluate, number, state))
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    score = self.take(*one.result())
        self.write(score)

    def write(self, score):
        commit = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, text=True,
                                capture_output=True).stdout.strip()
        statuses = [row["status"] for row in self.curve]
        summary = {"what": "search from examples/plain.cu by rules; scores are paired ratios over examples/plain.cu",
                   "git": commit or "unknown", "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                   "device": score["device"], "seed": self.options.seed, "jobs": self.options.jobs,
                   "evaluations": len(self.curve), "seconds": self.curve[-1]["seconds"],
                   "statuses": {name: statuses.count(name) for name in sorted(set(statuses))},
                   "first": self.curve[0]["score"], "best": self.best, "best_edits": " ".join(self.state)}
        rows = ",\n  ".join(json.dumps(row) for row in self.curve)
        text = json.dumps(summary)[:-1] + f',\n "curve": [\n  {rows}\n]}}\n'
        if self.options.json:
            pathlib.Path(self.options.json).write_text(text)
        print(f"{len(self.curve)} evaluations: {self.curve[0]['score']} to {self.best} with [{summary['best_edits']}]")


def main():
    if "--help" in sys.argv:
        print(__doc__)
        return
    words, more = sys.argv[1:], []
    if "--" in words:
        words, more = words[:words.index("--")], words[words.index("--") + 1:]
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--json")
    parser.add_argument("--best")
    parser.add_argument("--make")
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=max(1, min(4, os.cpu_count() // 2)))
    options = parser.parse_args(words)
    options.more = more
    if options.make is not None:
        given = options.make.split()
        chosen = [w for w in given if "=" in w]
        first = [w for w in FIRST if not any(c.startswith(w.split("=")[0] + "=") for c in chosen)]
        sys.stdout.write(source([*first, *given]))
        return
    with tempfile.TemporaryDirectory() as folder:
        Search(options, folder).run()


main()
