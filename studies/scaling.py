#!/usr/bin/env python3
"""Simulates sweeps on many GPUs: candidates per second, with the measured times of each stage, as a Markdown table.

A candidate circulates: its sweep's driver, a compiler on a core, a runner's check on a core, the GPU's lock, the
line in the leaderboard. Each stage serves as many candidates at once as it has servers, in the order of arrival.
"""

import argparse
import heapq
import random

# Seconds of a candidate at each stage of a sweep: wmma on two H200 of one machine with 32 cores, 485 candidates, losers
# stopped (evidence/h200/sweep_scaling.jsonl, commit d24751c5), where nothing else is said.
TIMES = {
    "cores_per_gpu": 16,
    # The mean of 480 tiles, a quarter of which are refused in 0.05 s: 16 compilers on a machine of 16 cores.
    "compile_cold_s": 0.639,
    # 1.06 times that: as 24 compilers on 32 cores over 12 on 16 of them. 32 were not measured.
    "compile_shared_s": 0.677,
    "compile_warm_s": 0.01,
    "check_s": 0.021,
    "check_shared_s": 0.022,  # with two GPUs
    "lock_s": 0.0095,  # 0.006 of those that are stopped, about 0.2 of 12 that are timed to the end
    "propose_s": 0.002,  # 6 points of a space of 3,840, two cores of 2026-11
    "driver_s": 0.0012,  # CPU time with a made-up fa_bench on the same machine: 0.0012 at 1 GPU, 0.0005 at 8
    "append_s": 0.001,  # assumed for a network file system; 0.00003 on a local disk
}


class Stage:
    def __init__(self, servers, seconds):
        self.free, self.seconds, self.queue = servers, seconds, []


def simulate(machines, gpus, cold, shared, seconds=12.0):
    """Candidates per second of `machines` sweeps, each with `gpus` GPUs; their leaderboard is one or one each."""
    spread, times = random.Random(1), TIMES
    cores = times["cores_per_gpu"] * gpus
    pool = min(16 * gpus, cores)
    batch = (pool // 2 + 1) // 2
    compile_s = times["compile_warm_s" if not cold else "compile_cold_s" if gpus == 1 else "compile_shared_s"]
    board = Stage(1, times["append_s"])
    routes = []
    for _ in range(machines):
        line = board if shared else Stage(1, times["append_s"])
        routes.append([
            Stage(1, times["propose_s"] / batch + times["driver_s"]), Stage(pool, compile_s),
            Stage(4 * gpus, times["check_s" if gpus == 1 else "check_shared_s"]),
            Stage(gpus, times["lock_s"]), line,
        ])  # fmt: skip
    events, ended, number = [], 0, 0

    def arrive(now, route, at):
        nonlocal number
        stage = route[at]
        if stage.free == 0:
            stage.queue.append((route, at))
            return
        stage.free -= 1
        number += 1
        heapq.heappush(events, (now + stage.seconds * spread.uniform(0.8, 1.2), number, route, at))

    for route in routes:
        for _ in range(pool + pool // 2):
            arrive(0.0, route, 0)
    warm = seconds / 3  # until the queues are as they stay
    while events[0][0] < seconds:
        now, _, route, at = heapq.heappop(events)
        stage = route[at]
        stage.free += 1
        if stage.queue:
            arrive(now, *stage.queue.pop(0))
        if at == len(route) - 1:
            ended += now > warm
        arrive(now, route, (at + 1) % len(route))
    return ended / (seconds - warm)


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("| GPUs | machines | one leaderboard, cold | one each, cold | of N times one GPU | one each, warm |")
    print("|---|---|---|---|---|---|")
    one = None
    for machines, gpus in (1, 1), (1, 2), (1, 4), (1, 8), (4, 8), (16, 8), (100, 8):
        shared = simulate(machines, gpus, True, True)
        each = simulate(machines, gpus, True, False)
        warm = simulate(machines, gpus, False, False)
        one = one or each
        share = each / one / (machines * gpus)
        print(f"| {machines * gpus} | {machines} | {shared:.0f}/s | {each:.0f}/s | {share:.2f} | {warm:.0f}/s |")


if __name__ == "__main__":
    main()
