#!/usr/bin/env python3
"""The end of a sweep of a whole space: how much faster 32 compilers are than 16, where none holds another up.

Plays --strategy random as scripts/lib/evo hands it out, over the 480 recorded tiles of wmma with vec=8 (H200,
search_space.jsonl.gz), with the seconds that their compilations took. The fastest tiles are tried with one or two
register limits. Prints the mean and the worst ratio, and how busy the compilers were. It needs no GPU.
"""
import argparse
import collections
import heapq
import math
import pathlib
import random
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from replay import proposer_of, recorded, space_of  # noqa: E402

RUN_S, RUNS_AT_ONCE, USUAL_S, REFUSED_S = 0.03, 4, 0.6, 0.05
LIMITED_TILES = ((1 / 2, 2), (3 / 4, 4))  # as in sweep.py


def tiles():
    """{knobs: (seconds of a compiler, microseconds or None)}"""
    spaces = recorded(HERE / "search_space.jsonl.gz")
    points = next(space for (kernel, group), space in spaces.items() if kernel == "wmma" and "H200" in group)
    return {knobs: (point["cold_s"] or (USUAL_S if point["p50_us"] else REFUSED_S), point["p50_us"])
            for knobs, point in points.items() if "vec=8" in knobs}  # fmt: skip


def play(space, pool, seed):
    """Seconds, and the share of them in which compilers were at work."""
    rng, proposer = random.Random(seed), proposer_of("random", space_of(space), seed)
    limits = {knobs: [f"{knobs},maxreg={i}" for i in range(rng.randrange(1, 3))] for knobs in space}
    todo, ready, waiting, limited, passed, events = collections.deque(), collections.deque(), set(), set(), [], []
    handed, compiling, running, now, busy_s, best = 0, 0, 0, 0.0, 0.0, math.inf

    def hand_out(count):
        nonlocal handed
        most = max([many for part, many in LIMITED_TILES if handed >= int(max(len(space), handed) * part)], default=0)
        new = [text for _, knobs in sorted(passed)[:most] for text in limits[knobs] if text not in limited][:count]
        batch = proposer.propose(count - len(new))
        for knobs in batch:
            proposer.tell({"knobs": knobs, "status": "pending"})
        todo.extendleft(new)
        todo.extend(batch)
        waiting.update(new + batch)
        limited.update(new)
        handed += len(new) + len(batch)

    hand_out(2 * pool)
    while waiting:
        while todo and compiling < pool:
            compiling, knobs = compiling + 1, todo.popleft()
            seconds = space[knobs.split(",maxreg")[0]][0]
            busy_s += seconds
            heapq.heappush(events, (now + seconds, True, knobs))
        while ready and running < RUNS_AT_ONCE:
            running += 1
            heapq.heappush(events, (now + RUN_S, False, ready.popleft()))
        now, compiled, knobs = heapq.heappop(events)
        cold_s, us = space[knobs.split(",maxreg")[0]]
        compiling, running = compiling - compiled, running - (not compiled)
        if compiled and us:
            ready.append(knobs)
            continue
        waiting.remove(knobs)
        if "maxreg" not in knobs:
            proposer.tell({"knobs": knobs, "status": "pass" if us else "infeasible", "p50_us": us, "cold_s": cold_s})
            passed += [(us, knobs)] if us and us < 1.05 * best else []  # a loser has no time
            best = min(best, us or best)
        if len(waiting) <= pool + pool // 2:
            hand_out((pool + 1) // 2)
    return now, busy_s / pool / now


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", nargs="?", type=int, default=24)
    seeds = parser.parse_args().seeds
    played, space = [], tiles()
    for seed in range(1, seeds + 1):
        (one_s, one_busy), (two_s, two_busy) = play(space, 16, seed), play(space, 32, seed)
        played.append((one_s / two_s, one_busy, two_busy))
    ratio, one, two = zip(*played)
    print(f"32 compilers over 16: {statistics.fmean(ratio):.3f}, at the worst {min(ratio):.3f}; "
          f"at work {statistics.fmean(one):.3f} and {statistics.fmean(two):.3f} of the time")


if __name__ == "__main__":
    main()
