"""The next points of a tile space by grid, random or evo: drawn from a seed, none proposed before. tpe: tpe.py."""

import collections
import itertools
import math
import os
import random
import statistics
import sys

from candidate import Refusal


def text_of(point):
    return ",".join(f"{name}={value}" for name, value in point.items())


def point_of(text):
    return {name: int(value) for name, value in (part.split("=") for part in text.split(","))}


def every(space):
    return [text_of(dict(zip(space, values))) for values in itertools.product(*space.values())]


class Proposer:
    def __init__(self, space, strategy, seed):
        self.space, self.strategy, self.seed = space, strategy, seed
        self.all, self.known, self.passed, self.told = every(space), set(), [], 0
        self.compiled = collections.defaultdict(list)  # seconds, by knob and value
        self.start = ""  # the tile that the registry would take, where it is known

    def tell(self, result):
        """{"knobs", "status", "p50_us"}; the status is "pending" when a candidate is handed out."""
        self.told += 1
        self.known.add(result["knobs"])
        for part in result["knobs"].split(",") if result.get("cold_s") else []:
            self.compiled[part].append(result["cold_s"])
        if result["status"] == "pass" and result.get("p50_us") is not None:
            self.passed.append(result)

    def propose(self, count):
        parents = [point_of(result["knobs"]) for result in sorted(self.passed, key=lambda r: r["p50_us"])[:8]]
        untried = [text for text in self.all if text not in self.known]
        if self.strategy in ("grid", "random") and self.compiled and len(untried) < len(self.all) / 2:
            # Those that compile longest first, so that none is left to compile alone.
            return sorted(untried, key=self.compile_time, reverse=True)[:count]
        if self.strategy == "grid":
            return untried[:count]
        begins = self.strategy == "random" or len(parents) < 4
        rng, best = random.Random(self.seed + (0 if begins else self.told)), parents[:2]
        if begins:
            best = [point_of(self.start)] if self.strategy == "evo" and self.start else []
        near = dict.fromkeys(text for point in best for text in self.neighbours(point) if text not in self.known)
        born = rng.sample(list(near), min(((2 if begins else 1) * count + 2) // 3, len(near)))
        if not begins:
            self.add_children(born, parents, count, rng)
        rest = [text for text in untried if text not in born]
        return born + rng.sample(rest, min(count - len(born), len(rest)))

    def compile_time(self, text):
        """As if each knob had a factor of its own: the means of the tiles with the same value, multiplied."""
        return math.prod(statistics.fmean(self.compiled[part] or [0.5]) for part in text.split(","))

    def neighbours(self, point):
        """One knob moved to a neighbour in its list, doubled or halved, or two doubled or halved together: the last
        steps to an optimum, which crossover takes by chance. A tile of half the rows often wants half the warps."""
        for name, values in self.space.items():
            at = values.index(point[name]) if point[name] in values else len(values) + 1
            for value in values[max(at - 1, 0) : at] + values[at + 1 : at + 2]:
                yield text_of({**point, name: value})
        for factor in 2, 0.5:
            moved = [(n, int(point[n] * factor)) for n, values in self.space.items() if point[n] * factor in values]
            for step in itertools.chain(itertools.combinations(moved, 1), itertools.combinations(moved, 2)):
                yield text_of({**point, **dict(step)})

    def add_children(self, born, parents, count, rng):
        for _ in range((count - len(born)) * 20):
            if len(born) >= count:
                return
            text = self.child(parents, rng)
            if text not in self.known and text not in born:
                born.append(text)

    def child(self, parents, rng):
        """Each knob from one of two parents, one time in four moved to a neighbour, one time in twelve to any value."""
        pair, point = rng.choices(parents, k=2), {}
        for name, values in self.space.items():
            value, roll = rng.choice(pair)[name], rng.randrange(12)
            at = values.index(value) if value in values else 0
            if roll == 0:
                at = rng.randrange(len(values))
            elif roll < 4:
                at += rng.choice((-1, 1))
            point[name] = values[min(max(at, 0), len(values) - 1)]
        return text_of(point)


def proposer_of(strategy, space, seed):
    """What proposes by a strategy: propose(count) gives points, tell(result) says what became of one."""
    if strategy == "tpe":
        sys.path.append(os.path.join(os.path.dirname(__file__), "../../../build/tools/optuna"))
        try:
            import tpe
        except ImportError:
            raise Refusal(4, "NOT-RUN: no Python package optuna: run scripts/setup.sh") from None
        return tpe.Proposer(space, seed)
    return Proposer(space, strategy, seed)
