#!/usr/bin/env python3
"""Points of a tile space by Optuna's tree-structured Parzen estimator, asked and told as a sweep goes.

A line on stdin is a count; the answer is as many points that were not handed out before, a line each ("m=32,warps=4"),
then an empty line. Results are read from the file of the sweep: {"knobs", "status", "p50_us"}, a line each.
"""

import argparse
import itertools
import json
import random
import sys
import warnings

import optuna
from optuna.trial import TrialState


class Proposer:
    def __init__(self, space, seed, tried):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space = space
        self.size = len(list(itertools.product(*space.values())))
        # A knob's values are ordered, so a point is a place in each list.
        self.distributions = {
            name: optuna.distributions.IntDistribution(0, len(values) - 1)
            for name, values in space.items()
            if len(values) > 1
        }
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # Points that still run count as bad ones, so that those asked at the same time differ.
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self.study = optuna.create_study(sampler=sampler)
        self.random = random.Random(seed)
        self.known, self.taken, self.running = set(), set(), {}
        self.tried, self.at = tried, 0

    def text(self, places):
        return ",".join(f"{name}={values[places.get(name, 0)]}" for name, values in self.space.items())

    def places(self, knobs):
        given = dict(part.split("=") for part in knobs.split(","))
        return {name: [str(v) for v in self.space[name]].index(given[name]) for name in self.distributions}

    def read(self):
        """Whole lines that have come since the last time. A point that was handed out and not taken is free again."""
        with open(self.tried) as file:
            file.seek(self.at)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break
                self.at += len(line)
                self.tell(json.loads(line))
        for knobs in self.running.keys() - self.taken:
            self.study.tell(self.running.pop(knobs), state=TrialState.FAIL)
            self.known.discard(knobs)

    def tell(self, result):
        knobs, status, time = result["knobs"], result["status"], result.get("p50_us")
        self.known.add(knobs)
        self.taken.add(knobs)
        if status in ("pending", "unknown"):
            return
        # What cannot be launched, or is wrong, is worse than every time; what was not run says nothing.
        state = TrialState.COMPLETE if status == "pass" and time else TrialState.PRUNED
        if status == "not_run" or (status == "pass" and not time):
            state = TrialState.FAIL
        trial = self.running.pop(knobs, None)
        if trial is None:
            self.study.enqueue_trial(self.places(knobs))
            trial = self.study.ask(self.distributions)
        self.study.tell(trial, time if state == TrialState.COMPLETE else None, state=state)

    def nearest(self, places):
        """The point that was not handed out and lies nearest, by steps in the lists."""
        best, least = None, None
        for values in itertools.product(*(range(d.high + 1) for d in self.distributions.values())):
            point = dict(zip(self.distributions, values))
            if self.text(point) in self.known:
                continue
            steps = sum(abs(point[name] - places[name]) for name in point) + self.random.random() / 2
            if least is None or steps < least:
                best, least = point, steps
        return best

    def propose(self):
        """A point, or None when all were handed out."""
        if len(self.known) >= self.size:
            return None
        for _ in range(8):
            trial = self.study.ask(self.distributions)
            if self.text(trial.params) not in self.known:
                break
            self.study.tell(trial, state=TrialState.FAIL)
        else:
            self.study.enqueue_trial(self.nearest(trial.params))
            trial = self.study.ask(self.distributions)
        knobs = self.text(trial.params)
        self.known.add(knobs)
        self.running[knobs] = trial
        return knobs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", type=json.loads, required=True, help='{"m": [16, 32]}')
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tried", required=True, help="the file of results")
    options = parser.parse_args()
    proposer = Proposer(options.space, options.seed, options.tried)
    for line in sys.stdin:
        proposer.read()
        for _ in range(int(line)):
            knobs = proposer.propose()
            if knobs is None:
                break
            print(knobs)
        print(flush=True)


if __name__ == "__main__":
    main()
