#!/usr/bin/env python3
"""Fits the estimate to the even half of the measured points and judges it, and the bound's ranking, on the odd half.

Reads points of bound_evidence.sh (JSON lines) on standard input. usage: fit.py DEF JSON: writes the coefficients (the
form of src/timing/estimate.def) and the judgement as JSON. Which half a point is in is a hash of its options: always
the same.
"""
import hashlib
import json
import sys

LEAST_POINTS = 5  # of a kernel, for a factor of its own; of its judged half, for a band of its own
TILES = 12  # in a space that is ranked


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


def fit(points):
    """Weights and a factor per kernel in turns. Relative errors count, and every kernel the same."""
    names = list(points[0]["estimate_terms_us"])
    groups = by_kernel(points)
    factors = {kernel: 1.0 for kernel in groups}
    weights = {}
    for _ in range(8):
        rows, wanted = [], []
        for kernel, group in groups.items():
            share = 1 / max(len(group), LEAST_POINTS) ** 0.5
            for point in group:
                scale = share * factors[kernel] / point["us"]
                rows.append([terms(point)[name] * scale for name in names])
                wanted.append(share)
        weights = dict(zip(names, nonnegative_least_squares(rows, wanted)))
        for kernel, group in groups.items():
            if len(group) >= LEAST_POINTS:
                factors[kernel] = quantile([point["us"] / weighted(weights, point) for point in group], 0.5)
    return weights, {k: f for k, f in factors.items() if len(groups[k]) >= LEAST_POINTS}


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


def write_coefficients(path, weights, factors, bands):
    lines = ["/* Written by scripts/bound_rank.sh --fit from bound.json.points.jsonl.gz: the weight of each term; for",
             " * each kernel its factor, and what 10 % and 90 % of its judged times are of the estimate. */"]
    enum = {"launch": "FA_TERM_LAUNCH", "l2": "FA_TERM_L2", "copy": "FA_TERM_COPY", "steps": "FA_TERM_STEPS",
            "dram": "FA_TERM_DRAM"}
    for name, weight in weights.items():
        pipe = name.removesuffix("_chain").upper()
        first = "FA_TERM_CHAIN" if name.endswith("_chain") else "FA_TERM_PIPE"
        if weight > 0:
            lines.append(f"FA_WEIGHT({enum.get(name, f'{first} + FA_PIPE_{pipe}')}, {weight:.4g})")
    for kernel in sorted(factors) + [""]:
        low, high = bands.get(kernel, bands[""])
        lines.append(f'FA_FACTOR("{kernel}", {factors.get(kernel, 1):.4g}, {low:.4g}, {high:.4g})')
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


def main():
    path, summary = sys.argv[1:]
    points = [json.loads(line) for line in sys.stdin]
    points = [point for point in points if point["current"] and point.get("estimate_terms_us")]
    fitted = {}
    for point in points:  # a configuration counts once, by its first time
        if not odd(point):
            fitted.setdefault(point["options"], point)
    weights, factors = fit(list(fitted.values()))
    for point in points:
        point["estimate_us"] = max(point["bound_us"], weighted(weights, point) * factors.get(point["kernel"], 1))
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
    write_coefficients(path, weights, factors, bands)
    with open(summary, "w", encoding="ascii") as out:
        json.dump({"points": len(points), "fitted": len(fitted), "judged": len(judged),
                   "error": error_of(judged),
                   "kernels": [{"kernel": kernel, **error_of(group)} for kernel, group in by_kernel(judged).items()],
                   "factors": {kernel: round(factor, 4) for kernel, factor in factors.items()},
                   "weights": {name: round(weight, 4) for name, weight in weights.items() if weight > 0},
                   "spaces": rank_spaces(points)}, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
