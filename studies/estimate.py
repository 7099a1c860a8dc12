#!/usr/bin/env python3
"""How well the static bound and the estimate rank tiles, and how far the estimate is off, on recorded times. No GPU.

usage: studies/estimate.py [--dir DIR] [--fit | --table]

Reads DIR/bound.json.points.jsonl.gz (scripts/evidence/bound_evidence.sh) and writes DIR/bound_rank.json; prints its
table. The estimate is fitted to half of the configurations, chosen by a hash of their options (always the same half),
and judged on the others. Only points with the bound of the machine code that was timed count. For each swept space of
12 tiles or more: Spearman's rank correlation with the measured time; how much slower the best of the first eight is
than the best of all; what a search would have skipped (evo_sweep.sh --prune), in the order of the record, and how much
slower its winner would be.
"""
import argparse
import gzip
import hashlib
import json
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
LEAST_POINTS = 5  # of a kernel, for weights of its own; of its judged half, for a band of its own
TILES = 12  # in a space that is ranked
PULL = 0.03  # of a kernel's own weights to those of all, as a share of what its times say of them
FAR = 0.05  # an error from which a time counts by its size alone, not by its square

def odd(point):
    return int(hashlib.sha256(point["options"].encode()).hexdigest(), 16) % 2


def terms(point):
    """At the clock that was measured: all but the launch and DRAM scale with it."""
    scale = point["clock_mhz_max"] / (point["mhz"] or point["clock_mhz_max"])
    return {name: us * (1 if name in ("launch", "dram") else scale) for name, us in point["estimate_terms_us"].items()}


def nonnegative_least_squares(rows, wanted):
    """By coordinate descent."""
    count = len(rows[0])
    square = [[sum(row[i] * row[j] for row in rows) for j in range(count)] for i in range(count)]
    right = [sum(row[i] * value for row, value in zip(rows, wanted)) for i in range(count)]
    found = [0.0] * count
    for _ in range(20000):
        moved = 0.0
        for i in range(count):
            if square[i][i] > 0:
                step = (right[i] - sum(a * x for a, x in zip(square[i], found))) / square[i][i]
                new = max(0.0, found[i] + step)
                moved = max(moved, abs(new - found[i]) * square[i][i] ** 0.5)
                found[i] = new
        if moved < 1e-9:
            break
    return found


def by_kernel(points):
    groups = {}
    for point in points:
        groups.setdefault(point["kernel"], []).append(point)
    return dict(sorted(groups.items()))


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def weighted(weights, point):
    return sum(weights[name] * us for name, us in terms(point).items())


def relative(points, weights, factor, share):
    """Rows and what each should sum to, for least squares: a point's terms over its time, times factor and share. What
    is far off by the weights so far counts less, so that the sum of errors falls and not that of their squares."""
    rows, wanted = [], []
    for point in points:
        off = abs(math.log(max(1e-9, factor * weighted(weights, point) / point["us"]))) if weights else FAR
        much = share / max(off, FAR) ** 0.5
        rows.append([us * factor * much / point["us"] for us in terms(point).values()])
        wanted.append(much)
    return rows, wanted


def fit_all(points):
    """Weights for all kernels and a factor per kernel in turns. Relative errors count, and every kernel the same."""
    names = list(points[0]["estimate_terms_us"])
    groups = by_kernel(points)
    factors = {kernel: 1.0 for kernel in groups}
    weights = {}
    for _ in range(20):
        rows, wanted = [], []
        for kernel, group in groups.items():
            more = relative(group, weights, factors[kernel], 1 / max(len(group), LEAST_POINTS) ** 0.5)
            rows += more[0]
            wanted += more[1]
        weights = dict(zip(names, nonnegative_least_squares(rows, wanted)))
        for kernel, group in groups.items():
            if len(group) >= LEAST_POINTS:
                factors[kernel] = quantile([point["us"] / weighted(weights, point) for point in group], 0.5)
    return weights, {k: f for k, f in factors.items() if len(groups[k]) >= LEAST_POINTS}


def fit_own(points, first):
    """Weights of one kernel, drawn to the first ones: few points say little of most terms."""
    weights = first
    for _ in range(12):
        rows, wanted = relative(points, weights, 1, 1)
        for i, weight in enumerate(first.values()):
            strength = (PULL * sum(row[i] ** 2 for row in rows[:len(points)])) ** 0.5
            rows.append([strength if j == i else 0 for j in range(len(first))])
            wanted.append(strength * weight)
        weights = dict(zip(first, nonnegative_least_squares(rows, wanted)))
    return weights


def fit(points):
    """Weights by kernel; "": for every other."""
    of_all, factors = fit_all(points)
    groups = by_kernel(points)
    found = {kernel: fit_own(groups[kernel], {name: weight * factor for name, weight in of_all.items()})
             for kernel, factor in factors.items()}
    return {**found, "": of_all}


def ranks(values):
    """Equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in range(at, end + 1):
            found[order[i]] = (at + end) / 2
        at = end + 1
    return found


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    product = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    spread = (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5
    return round(product / spread, 3) if spread > 0 else None


def regret(points, key):
    best = min(point["us"] for point in points)
    return round(min(point["us"] for point in sorted(points, key=key)[:8]) / best - 1, 4)


def replay(points, least_us):
    """The search of a space in the order it was measured, without tiles of which least_us is above the best so far."""
    best, measured = None, 0
    for point in points:
        if best is None or least_us(point) <= best:
            measured += 1
            best = point["us"] if best is None else min(best, point["us"])
    fastest = min(point["us"] for point in points)
    return {"measured": measured, "skipped": len(points) - measured, "slower_winner": round(best / fastest - 1, 4)}


def rank_spaces(points):
    spaces = {}
    for point in points:
        if point["file"] in ("leaderboard.jsonl.gz", "bound_timed.jsonl.gz"):
            spaces.setdefault((point["kernel"], point["problem"]), {}).setdefault(point["options"], point)
    out = []
    for (kernel, problem), tiles in sorted(spaces.items()):
        tiles = list(tiles.values())
        if len(tiles) < TILES:
            continue
        times, judged = [point["us"] for point in tiles], [point for point in tiles if odd(point)]
        out.append({"kernel": kernel, "problem": problem, "tiles": len(tiles),
                    "bound": {"spearman": spearman([point["bound_us"] for point in tiles], times),
                              "regret_of_best_8": regret(tiles, lambda point: point["bound_us"])},
                    "estimate": {"judged_tiles": len(judged),
                                 "spearman": spearman([point["estimate_us"] for point in judged],
                                                      [point["us"] for point in judged]),
                                 "regret_of_best_8": regret(judged, lambda point: point["estimate_us"])},
                    "prune_bound": replay(tiles, lambda point: point["clocks"] / point["clock_mhz_max"]),
                    "prune_estimate": replay(tiles, lambda point: point["estimate_us_low"])})
    return out


def error_of(points):
    errors = [abs(point["estimate_us"] / point["us"] - 1) for point in points]
    return {"points": len(points), "median": round(quantile(errors, 0.5), 3), "p90": round(quantile(errors, 0.9), 3)}


def write_coefficients(path, weights, bands):
    enum = {name: f"FA_TERM_{name.upper()}" for name in ("launch", "l2", "copy", "steps", "blocks", "parts", "dram")}
    lines = ["/* Written by studies/estimate.py --fit from bound.json.points.jsonl.gz: of each kernel what 10 % and",
             " * 90 % of its judged times are of the estimate, and the weight of each term. */"]
    for kernel in sorted(weights, reverse=True):  # "" is last
        low, high = bands.get(kernel, bands[""])
        lines.append(f'FA_ESTIMATE("{kernel}", {low:.4g}, {high:.4g},')
        for name, weight in weights[kernel].items():
            first = "FA_TERM_CHAIN" if name.endswith("_chain") else "FA_TERM_PIPE"
            term = enum.get(name, f"{first} + FA_PIPE_{name.removesuffix('_chain').upper()}")
            if weight >= 0.0005:
                lines.append(f"            [{term}] = {weight:.4g},")
        lines[-1] = lines[-1].rstrip(",") + ")"
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


def judge(folder):
    """Writes bound_rank.json; gives the weights and the bands by kernel."""
    with gzip.open(folder / "bound.json.points.jsonl.gz", "rt") as lines:
        points = [json.loads(line) for line in lines]
    points = [point for point in points if point["code_of"] and point.get("estimate_terms_us")]
    fitted = {}
    for point in points:  # a configuration counts once, by its first time
        if not odd(point):
            fitted.setdefault(point["options"], point)
    weights = fit(list(fitted.values()))
    for point in points:
        own = weights.get(point["kernel"], weights[""])
        point["estimate_us"] = max(point["bound_us"], weighted(own, point))
    judged = {}
    for point in points:
        if odd(point):
            judged.setdefault(point["options"], point)
    judged = list(judged.values())
    bands = {}
    for kernel, group in list(by_kernel(judged).items()) + [("", judged)]:
        ratios = [point["us"] / point["estimate_us"] for point in group]
        if len(group) >= LEAST_POINTS:
            bands[kernel] = (quantile(ratios, 0.1), quantile(ratios, 0.9))
    for point in points:
        low = bands.get(point["kernel"], bands[""])[0]
        point["estimate_us_low"] = max(point["bound_us"], point["estimate_us"] * low)
    with open(folder / "bound_rank.json", "w", encoding="ascii") as out:
        json.dump({"points": len(points), "fitted": len(fitted), "judged": len(judged),
                   "error": error_of(judged),
                   "kernels": [{"kernel": kernel, **error_of(group)} for kernel, group in by_kernel(judged).items()],
                   "weights": {kernel: {name: round(weight, 4) for name, weight in own.items() if weight >= 0.0005}
                               for kernel, own in weights.items()},
                   "spaces": rank_spaces(points)}, out, indent=1)
        out.write("\n")
    return weights, bands


def percent(share):
    return f"{math.floor(100 * share + 0.5)} %"


def hundredths(value):
    return "-" if value is None else f"{round(value, 2):g}"


def table(rank):
    print(f"The estimate, fitted to {rank['fitted']} configurations and judged on {rank['judged']} others: off by",
          f"{percent(rank['error']['median'])} (median), {percent(rank['error']['p90'])} (nine in ten).\n")
    print("| kernel | judged | off by, median | off by, nine in ten |\n|---|---|---|---|")
    for row in rank["kernels"]:
        print(f"| `{row['kernel']}` | {row['points']} | {percent(row['median'])} | {percent(row['p90'])} |")
    print("\nOf a swept space: rank correlation with the measured time, and how much slower the best of the first "
          "eight is.\n\n| kernel | problem | tiles | bound: correlation | best of 8 | skipped | estimate: correlation "
          "| best of 8 | skipped |\n|---|---|---|---|---|---|---|---|---|")
    for space in rank["spaces"]:
        bound, estimate, pruned = space["bound"], space["estimate"], space["prune_estimate"]
        print(f"| `{space['kernel']}` | {space['problem']} | {space['tiles']} | {hundredths(bound['spearman'])} |",
              f"+{percent(bound['regret_of_best_8'])} | {space['prune_bound']['skipped']} |",
              f"{hundredths(estimate['spearman'])} | +{percent(estimate['regret_of_best_8'])} |",
              f"{pruned['skipped']}, winner +{percent(pruned['slower_winner'])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=HERE.parent / "evidence/h200", metavar="DIR")
    parser.add_argument("--fit", action="store_true", help="write the coefficients to src/timing/estimate.def, too")
    parser.add_argument("--table", action="store_true", help="print the table of DIR/bound_rank.json, do nothing else")
    arguments = parser.parse_args()
    if not arguments.table:
        weights, bands = judge(arguments.dir)
        if arguments.fit:
            write_coefficients(HERE.parent / "src/timing/estimate.def", weights, bands)
    table(json.loads((arguments.dir / "bound_rank.json").read_text()))


if __name__ == "__main__":
    main()
