"""Replays a sweep's strategies over candidates that were measured before: the best found after N evaluations.

replay.py LEADERBOARD STRATEGY,... SEEDS BUDGET BATCH, as scripts/replay.sh takes them."""

import json
import statistics
import sys

from candidate import Refusal, parse
from propose import every, proposer_of


def recorded(path):
    """{(kernel, group): {knobs: result}}; of lines with the same tile the last counts."""
    spaces = {}
    with open(path) as file:
        for line in file:
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


def main():
    path, strategies, *numbers = sys.argv[1:]
    seeds_each, budget, batch = map(int, numbers)
    marks = [n for n in (8, 16, 24, 32, 48, 64, 96) if n <= budget] or [budget]
    for (kernel, group), points in sorted(recorded(path).items()):
        best = min(point["p50_us"] for point in points.values() if point["p50_us"])
        for strategy in strategies.split(","):
            seeds = range(1, 2 if strategy == "grid" else seeds_each + 1)
            curves = [after(run(strategy, seed, points, budget, batch), marks) for seed in seeds]
            over = [[time / best for time in column if time] for column in zip(*curves)]
            print(json.dumps({
                "swept": kernel, "group": group, "points": len(points), "best_us": best, "strategy": strategy,
                "seeds": len(seeds), "batch": batch, "after": marks,
                "median_over_best": [round(statistics.median(v), 4) if v else None for v in over],
                "worst_over_best": [round(max(v), 4) if v else None for v in over],
                "found_best": [sum(x == 1 for x in v) for v in over],
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    try:
        main()
    except Refusal as refusal:
        print(f"replay.sh: {refusal.args[1]}", file=sys.stderr)
        sys.exit(refusal.args[0])
    except OSError as error:
        print(f"replay.sh: cannot write to standard output: {error.strerror}", file=sys.stderr)
        sys.exit(6)
