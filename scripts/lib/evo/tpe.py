"""Points of a tile space by Optuna's tree-structured Parzen estimator, asked and told as a sweep goes."""

import itertools
import random
import warnings

import optuna
from optuna.trial import TrialState


class Proposer:
    def __init__(self, space, seed):
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

    def text(self, places):
        return ",".join(f"{name}={values[places.get(name, 0)]}" for name, values in self.space.items())

    def places(self, knobs):
        given = dict(part.split("=") for part in knobs.split(","))
        return {name: [str(v) for v in self.space[name]].index(given[name]) for name in self.distributions}

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

    def propose(self, count):
        """As many points, or those that are left. One that was proposed before and not taken is free again."""
        for knobs in self.running.keys() - self.taken:
            self.study.tell(self.running.pop(knobs), state=TrialState.FAIL)
            self.known.discard(knobs)
        return [self.next() for _ in range(min(count, self.size - len(self.known)))]

    def next(self):
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
