#!/usr/bin/env python3
"""Compares the strategies of evo_sweep.sh over candidates that were measured before; needs no GPU.

usage: studies/replay.py [options] [LEADERBOARD]; studies/replay.py --table CURVES

A search is offered the recorded candidates alone and learns their recorded times. Prints a line of JSON per kernel and
strategy: the best time found after N candidates over the best recorded, as the median and the worst of the seeds.
"""
import argparse
import gzip
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts/lib/evo"))
from candidate import Refusal, parse  # noqa: E402
from propose import every, proposer_of  # noqa: E402


def lines_of(path):
    with (gzip.open(path, "rt") if str(path).endswith(".gz") else open(path, encoding="utf-8")) as lines:
        yield from lines


def recorded(path):
    """{(kernel, group): {knobs: result}}; of lines with the same tile the last counts."""
    spaces = {}
    for line in lines_of(path):
        row = parse(line, [({str}, "group kernel"), ({int, float}, "p50_us")], "group kernel knobs status")
        if row is None:  # torn, or no result
            continue
        spaces.setdefault((row["kernel"], row["group"]), {})[row["knobs"]] = {
            "knobs": row["knobs"], "status": row["status"], "p50_us": row.get("p50_us"),
        }  # fmt: skip
    timed = {name: points for name, points in spaces.items() if any(point["p50_us"] for point in points.values())}
    if not timed:
        raise Refusal(2, f"no recorded time in {path}")
    return timed


def space_of(points):
    space = {}
    for knobs in points:
        for part in knobs.split(","):
            name, value = part.split("=")
            space.setdefault(name, set()).add(int(value))
    return {name: sorted(values) for name, values in space.items()}


def run(strategy, seed, points, budget, batch):
    """The times in the order in which the strategy asks for them; None where a candidate has no time."""
    space, order = space_of(points), []
    proposer = proposer_of(strategy, space, seed)
    for knobs in every(space):
        if knobs not in points:  # never proposed: nobody has measured them
            proposer.tell({"knobs": knobs, "status": "unknown", "p50_us": None})
    while len(order) < min(budget, len(points)):
        count = min(2 * batch if not order else batch, budget - len(order))
        asked = proposer.propose(count)
        if not asked:
            break
        for knobs in asked:
            proposer.tell(points[knobs])
        order += [points[knobs]["p50_us"] if points[knobs]["status"] == "pass" else None for knobs in asked]
    return order


def after(order, marks):
    """The best of the first N, for each N of marks."""
    return [min([time for time in order[:mark] if time], default=None) for mark in marks]


def curves(arguments):
    marks = [n for n in (8, 16, 24, 32, 48, 64, 96) if n <= arguments.budget] or [arguments.budget]
    for (kernel, group), points in sorted(recorded(arguments.leaderboard).items()):
        best = min(point["p50_us"] for point in points.values() if point["p50_us"])
        for strategy in arguments.strategy.split(","):
            seeds = range(1, 2 if strategy == "grid" else arguments.seeds + 1)
            found = [after(run(strategy, seed, points, arguments.budget, arguments.batch), marks) for seed in seeds]
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
    parser.add_argument("leaderboard", nargs="?", default=HERE / "sweep_candidates.jsonl.gz", metavar="LEADERBOARD",
                        help="leaderboard.jsonl or its .gz (default: sweep_candidates.jsonl.gz here)")
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
