#!/usr/bin/env python3
"""Compares the strategies of evo_sweep.sh over candidates that were measured before; needs no GPU.

usage: studies/replay.py [options] [LEADERBOARD...]; studies/replay.py --table CURVES

A search is offered the recorded candidates alone and learns their recorded times. Prints a line of JSON per kernel and
strategy: the best time found after N candidates over the best recorded, as the median and the worst of the seeds. evo
begins beside the tile that the registry takes today (FA_BENCH --select; default ./fa_bench), where it is recorded.

--cores N: seconds until a search that compiles on so many cores has a tile within 1 % of the best recorded, of the
compile times that were recorded, four runs at once and 0.05 s a run. That is a simulation: compilers do not hold each
other up.
"""
import argparse
import collections
import gzip
import heapq
import json
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts/lib/evo"))
from candidate import Refusal, parse, run_bench  # noqa: E402
from propose import every, proposer_of  # noqa: E402

os.environ.setdefault("FA_BENCH", str(HERE.parent / "fa_bench"))
RUN_S, RUNS_AT_ONCE, REFUSED_S = 0.05, 4, 0.05  # of a candidate that is compiled; of one that a static_assert refuses


def lines_of(path):
    with (gzip.open(path, "rt") if str(path).endswith(".gz") else open(path, encoding="utf-8")) as lines:
        yield from lines


def recorded(*paths):
    """{(kernel, group): {knobs: result}}; of lines with the same tile the last counts. A loser that was not timed to
    the end has the time that it takes at least. Tiles with a register limit are no part of a strategy's space."""
    spaces = {}
    for line in (line for path in paths for line in lines_of(path)):
        types = [({str}, "group kernel"), ({int, float}, "p50_us at_least_us compile_s")]
        row = parse(line, types, "group kernel knobs status")
        if row is None or "maxreg=" in row["knobs"]:  # torn, or no result
            continue
        us = row.get("p50_us") or row.get("at_least_us")
        cold_s = row.get("compile_s") if row.get("cache_hit") is False else None
        spaces.setdefault((row["kernel"], row["group"]), {})[row["knobs"]] = {
            "knobs": row["knobs"], "status": "pass" if row["status"] == "beaten" else row["status"], "p50_us": us,
            "cold_s": cold_s,
        }  # fmt: skip
    timed = {name: points for name, points in spaces.items() if any(point["p50_us"] for point in points.values())}
    if not timed:
        raise Refusal(2, f"no recorded time in {' '.join(map(str, paths))}")
    return timed


def start_of(kernel, group, points):
    """The tile that the registry takes for the problem; where a variant serves it, the kernel's default."""
    _, target, problem, *_ = group.split("|")
    shape = [f"--{n}" for n in "batch heads kv-heads seq seq-kv dim".split()], problem.split(",")
    words = [word for pair in zip(*shape) for word in pair] + ["--causal"] * problem.endswith("causal")
    _, record, _ = run_bench(["--kernel", kernel, *words, "--select", "--arch", target])
    config = (record or {}).get("config") or {}
    if record and record.get("variant") != kernel:
        rows = json.loads(os.popen(f"{os.environ['FA_BENCH']} --list-kernels --json -").read())
        config = next(row["defaults"] for row in rows if row["name"] == kernel)
    tile = ",".join(f"{name}={config.get(name)}" for name in space_of(points))
    return tile if tile in points else ""


def space_of(points):
    space = {}
    for knobs in points:
        for part in knobs.split(","):
            name, value = part.split("=")
            space.setdefault(name, set()).add(int(value))
    return {name: sorted(values) for name, values in space.items()}


def offered(strategy, seed, points, start):
    """A proposer of the recorded points: nobody has measured the others."""
    proposer = proposer_of(strategy, space_of(points), seed)
    proposer.start = start
    for knobs in every(space_of(points)):
        if knobs not in points:
            proposer.tell({"knobs": knobs, "status": "unknown", "p50_us": None})
    return proposer


def asked_of(proposer, count, start):
    """The next candidates, the registry's tile first, as a sweep has it."""
    begins = [start] if start and start not in proposer.known else []
    return list(dict.fromkeys(begins + proposer.propose(count)))[:count]


def run(strategy, seed, points, budget, batch, start):
    """The times in the order in which the strategy asks for them; None where a candidate has no time."""
    proposer, order = offered(strategy, seed, points, start), []
    while len(order) < min(budget, len(points)):
        count = min(2 * batch if not order else batch, budget - len(order))
        asked = asked_of(proposer, count, start)
        if not asked:
            break
        for knobs in asked:  # without its compile time: here a search has a budget, not a whole space
            proposer.tell({**points[knobs], "cold_s": None})
        order += [points[knobs]["p50_us"] if points[knobs]["status"] == "pass" else None for knobs in asked]
    return order


def after(order, marks):
    """The best of the first N, for each N of marks."""
    return [min([time for time in order[:mark] if time], default=None) for mark in marks]


def clock(strategy, seed, points, budget, cores, start):
    """As a sweep with one GPU goes: seconds to a tile within 1 % of the best (None: never), and to the end; the best
    that it found."""
    proposer, best = offered(strategy, seed, points, start), min(p["p50_us"] for p in points.values() if p["p50_us"])
    usual = statistics.median([p["cold_s"] for p in points.values() if p["cold_s"] and p["p50_us"]] or [0.7])
    lead, handed, waiting, now, hit, found = cores // 2, 0, set(), 0.0, None, None
    events, compiling, running, todo, ready = [], 0, 0, collections.deque(), collections.deque()

    def hand_out(count):
        nonlocal handed
        batch = asked_of(proposer, min(count, budget - handed), start)
        for knobs in batch:
            proposer.tell({"knobs": knobs, "status": "pending"})
        waiting.update(batch)
        if strategy in ("evo", "tpe"):  # what was proposed last is compiled first
            todo.extendleft(reversed(batch))
        else:
            todo.extend(batch)
        handed += len(batch)

    hand_out(cores + lead)
    while waiting:
        while todo and compiling < cores:
            point = points[todo.popleft()]
            compiling += 1
            seconds = point["cold_s"] or (usual if point["p50_us"] else REFUSED_S)
            heapq.heappush(events, (now + seconds, "compiled", point["knobs"]))
        while ready and running < RUNS_AT_ONCE:
            running += 1
            heapq.heappush(events, (now + RUN_S, "ran", ready.popleft()))
        now, what, knobs = heapq.heappop(events)
        if what == "compiled":
            compiling -= 1
            if points[knobs]["p50_us"]:
                ready.append(knobs)
                continue
        else:
            running -= 1
            found = min(found or points[knobs]["p50_us"], points[knobs]["p50_us"])
            hit = now if hit is None and found <= 1.01 * best else hit
        waiting.remove(knobs)
        proposer.tell(points[knobs])
        if len(waiting) <= cores + lead // 2:
            hand_out((lead + 1) // 2)
    return hit, now, found and found / best


def clocks(name, points, strategy, seeds, arguments, start):
    runs = [clock(strategy, seed, points, arguments.budget, arguments.cores, start) for seed in seeds]
    hits = sorted(hit if hit is not None else float("inf") for hit, _, _ in runs)
    said = [None if hit == float("inf") else round(hit, 2) for hit in (statistics.median_low(hits), hits[-1])]
    print(json.dumps({
        "swept": name[0], "group": name[1], "points": len(points), "strategy": strategy, "start": start or None,
        "cores": arguments.cores, "seeds": len(seeds), "median_s": said[0], "worst_s": said[1],
        "within_4.4_s": sum(hit <= 4.4 for hit in hits),
        "end_s": round(statistics.median(end for _, end, _ in runs), 2),
        "worst_over_best": round(max(over or float("inf") for _, _, over in runs), 4),
    }), flush=True)  # fmt: skip


def curves(arguments):
    marks = [n for n in (8, 16, 24, 32, 48, 64, 96) if n <= arguments.budget] or [arguments.budget]
    for (kernel, group), points in sorted(recorded(*arguments.leaderboard).items()):
        best = min(point["p50_us"] for point in points.values() if point["p50_us"])
        for strategy in arguments.strategy.split(","):
            start = start_of(kernel, group, points) if strategy == "evo" else ""
            seeds = range(1, 2 if strategy == "grid" else arguments.seeds + 1)
            if arguments.cores:
                clocks((kernel, group), points, strategy, seeds, arguments, start)
                continue
            searches = (run(strategy, seed, points, arguments.budget, arguments.batch, start) for seed in seeds)
            found = [after(search, marks) for search in searches]
            over = [[time / best for time in column if time] for column in zip(*found)]
            print(json.dumps({
                "swept": kernel, "group": group, "points": len(points), "best_us": best, "strategy": strategy,
                "seeds": len(seeds), "batch": arguments.batch, "after": marks,
                "median_over_best": [round(statistics.median(v), 4) if v else None for v in over],
                "worst_over_best": [round(max(v), 4) if v else None for v in over],
                "found_best": [sum(x == 1 for x in v) for v in over],
            }), flush=True)  # fmt: skip


def table(path):
    rows = [json.loads(line) for line in lines_of(path)]
    after_n = rows[0]["after"]
    print("| recorded | strategy | seeds |", *(f"after {n} |" for n in after_n), "found the best |")
    print("|---|---|---|" + "---|" * len(after_n) + "---|")
    for row in rows:
        medians = ("-" if v is None else f"{round(v, 3):g}" for v in row["median_over_best"])
        print(f"| {row['swept']}, {row['points']} points | {row['strategy']} | {row['seeds']} |",
              *(f"{median} |" for median in medians), f"{row['found_best'][-1]} of {row['seeds']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("leaderboard", nargs="*", default=[HERE / "sweep_candidates.jsonl.gz"], metavar="LEADERBOARD",
                        help="leaderboard.jsonl or its .gz (default: sweep_candidates.jsonl.gz here)")
    parser.add_argument("--cores", type=int, default=0, help="seconds of a search on so many cores")
    parser.add_argument("--strategy", default="grid,random,evo,tpe", metavar="NAME[,NAME...]")
    parser.add_argument("--seeds", type=int, default=8, help="searches of each but grid (default 8)")
    parser.add_argument("--budget", type=int, default=64, help="candidates of a search (default 64)")
    parser.add_argument("--batch", type=int, default=6, help="asked for at once, twice as many at first (default 6)")
    parser.add_argument("--table", metavar="CURVES", help="print such curves as Markdown")
    arguments = parser.parse_args()
    table(arguments.table) if arguments.table else curves(arguments)


if __name__ == "__main__":
    try:
        main()
    except Refusal as refusal:
        print(f"replay.py: {refusal.args[1]}", file=sys.stderr)
        sys.exit(refusal.args[0])
