#!/usr/bin/env python3
"""Simulates sweeps on many GPUs: candidates per second, with the measured times of each stage, as a Markdown table.

A candidate circulates: its sweep's driver, a compiler on a core, a runner's check on a core, the GPU's lock, the
line in the leaderboard. Each stage serves as many candidates at once as it has servers, in the order of arrival.
"""

import heapq
import json
import pathlib
import random
import sys


class Stage:
    def __init__(self, servers, seconds):
        self.free, self.seconds, self.queue = servers, seconds, []


def simulate(times, machines, gpus, cold, shared, seconds=12.0):
    """Candidates per second of `machines` sweeps, each with `gpus` GPUs; their leaderboard is one or one each."""
    spread = random.Random(1)
    cores = times["cores_per_gpu"] * gpus
    pool = min(12 * gpus, cores * 3 // 4)
    batch = (pool + 1) // 2
    compile_s = times["compile_cold_s"] if cold else times["compile_warm_s"]
    board = Stage(1, times["append_s"])
    routes = []
    for _ in range(machines):
        line = board if shared else Stage(1, times["append_s"])
        routes.append([
            Stage(1, times["propose_s"] / batch + times["driver_s"]), Stage(pool, compile_s),
            Stage(min(4 * gpus, cores - pool), times["check_s"]), Stage(gpus, times["lock_s"]), line,
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
    times = json.loads(pathlib.Path(sys.argv[1]).read_text())["seconds"]
    print("| GPUs | machines | one leaderboard, cold | one each, cold | of N times one GPU | one each, warm |")
    print("|---|---|---|---|---|---|")
    one = None
    for machines, gpus in (1, 1), (1, 2), (1, 4), (1, 8), (4, 8), (16, 8), (64, 8), (125, 8):
        shared = simulate(times, machines, gpus, True, True)
        each = simulate(times, machines, gpus, True, False)
        warm = simulate(times, machines, gpus, False, False)
        one = one or each
        share = each / one / (machines * gpus)
        print(f"| {machines * gpus} | {machines} | {shared:.0f}/s | {each:.0f}/s | {share:.2f} | {warm:.0f}/s |")


if __name__ == "__main__":
    main()
