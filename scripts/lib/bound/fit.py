#!/usr/bin/env python3
"""Fits the estimate to the even half of the measured points and judges it, and the bound's ranking, on the odd half.

Reads points of bound_evidence.sh (JSON lines) on standard input. usage: fit.py DEF JSON: writes the coefficients (the
form of src/timing/estimate.def) and the judgement as JSON. Which half a point is in is a hash of its options: always
the same.
"""
import hashlib
import json
import math
import sys

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
    lines = ["/* Written by bound_rank.sh --fit from bound.json.points.jsonl.gz: of each kernel what 10 % and",
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


def main():
    path, summary = sys.argv[1:]
    points = [json.loads(line) for line in sys.stdin]
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
    write_coefficients(path, weights, bands)
    with open(summary, "w", encoding="ascii") as out:
        json.dump({"points": len(points), "fitted": len(fitted), "judged": len(judged),
                   "error": error_of(judged),
                   "kernels": [{"kernel": kernel, **error_of(group)} for kernel, group in by_kernel(judged).items()],
                   "weights": {kernel: {name: round(weight, 4) for name, weight in own.items() if weight >= 0.0005}
                               for kernel, own in weights.items()},
                   "spaces": rank_spaces(points)}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
