"""The gate's tiles: every value of every knob that a kernel's own space offers, and pairs of values drawn by a seed.

A space is {knob: values}, the knobs of FA_SPACE with more than one value; a tile is {knob: value} of all knobs.
"""
import itertools
import random

from problems import options, problem, served

TRIES = 24  # tiles tried for a value or a pair until one is not infeasible
PAIRS = {"cuda": 32, "emu": 12}  # of each kernel, at most


def space_of(row, pinned):
    """The space of a row of --list-kernels, without the knobs that the user has set, and its whole default tile."""
    values_of = row.get("values") or {}
    default = {knob: its[0] for knob, its in values_of.items()} | (row.get("defaults") or {})
    return {knob: its for knob, its in values_of.items() if len(its) > 1 and f"--{knob}" not in pinned}, default


def candidates(wanted, space, default, rng):
    """TRIES tiles with the wanted values, to be tried until one is not infeasible: the default's other values, then
    one other knob changed, then two."""
    base, others = default | wanted, [knob for knob in space if knob not in wanted]
    tiles = [base]
    for count in (1, 2):
        changes = [dict(zip(changed, its)) for changed in itertools.combinations(others, count)
                   for its in itertools.product(*(space[knob] for knob in changed))]
        tiles += [base | change for change in rng.sample(changes, len(changes))
                  if all(value != default[knob] for knob, value in change.items())]
    return tiles[:TRIES]


def name_of(wanted):
    return " ".join(f"{knob}={value}" for knob, value in wanted.items())


def values(space, default, seed):
    """(name, candidates) of every value that is not the default's."""
    rng = random.Random(seed)
    return [(f"{knob}={value}", candidates({knob: value}, space, default, rng))
            for knob, its in space.items() for value in its if value != default[knob]]


def pairs(space, default, seed, most):
    """(name, candidates) of pairs of values, neither of them the default's. A tile covers all the pairs of its values:
    of some tiles drawn for a pair that no earlier tile covers the one that covers most is tried first."""
    rng = random.Random(seed)
    left = [((a, x), (b, y)) for a, b in itertools.combinations(space, 2)
            for x, y in itertools.product(space[a], space[b]) if x != default[a] and y != default[b]]
    rng.shuffle(left)

    def covered(tile):
        return {pair for pair in left if all(tile[knob] == value for knob, value in pair)}
    found = []
    while left and len(found) < most:
        wanted = dict(left[0])
        drawn = [default | {knob: rng.choice(its) for knob, its in space.items()} | wanted for _ in range(20)]
        tiles = sorted(drawn, key=lambda tile: -len(covered(tile)))[:TRIES // 4]
        found.append((name_of(wanted), tiles + candidates(wanted, space, default, rng)[:TRIES - len(tiles)]))
        left = [pair for pair in left if pair not in covered(tiles[0])]
    return found


# Small problems that exercise a tile. More fields of a problem are set here as problems.py learns them.

def keys_of(tile):
    """Keys for some tiles more than there are stages, or for a tile and a half of each split; ends within a tile."""
    n = max(16, tile["n"])
    return n * max(tile["stages"] + 2, tile["splits"] * 3 // 2) + n // 2 + 3


def long_causal(tile):
    """Two tiles of rows, the second in part; tiles of keys before the diagonal, on it, and one that ends early."""
    seq = tile["m"] + 3 + (tile["m"] // 2 if tile["splits"] == 1 else 0)
    return problem(heads=2, kv_heads=1, seq=seq, seq_kv=max(keys_of(tile), seq + 9), dim=64, causal=True, seeds=2)


def long_full(tile):
    """No mask, a width that is no power of two, gaps between rows, groups of heads; the log-sum-exp."""
    return problem(batch=2, heads=2, kv_heads=1, seq=max(1, tile["m"] - 5), seq_kv=keys_of(tile), dim=40,
                   strides="padded", lse=True, seed=43, seeds=1)


def short_causal(tile):
    """Less than a tile of keys: most stages and splits have none, and the first rows see none."""
    keys = max(16, tile["n"]) // 2 - 1
    return problem(heads=2, seq=keys + 4, seq_kv=keys, dim=64, causal=True, seeds=1)


def short_full(tile):
    """As many tiles of keys as there are stages, full ones; a part of the splits has keys."""
    return problem(heads=2, seq=5, seq_kv=max(16, tile["n"]) * max(tile["stages"], tile["splits"] // 2), dim=40,
                   strides="padded", lse=True, seed=44, seeds=1)


def race(tile):
    """Some tiles of keys, by two tiles of rows: the race detector is slow."""
    return problem(seq=tile["m"] + 3, seq_kv=max(keys_of(tile), tile["m"] + 9), dim=32, causal=True, seeds=1)


def misaligned(tile):
    """Tensors that begin at a multiple of four bytes and of no more."""
    return problem(heads=2, seq=5, seq_kv=max(16, tile["n"]) + 3, dim=40, misalign=2, seeds=1)


SHAPES = (long_causal, short_full, short_causal, long_full)


def lines(space, tiles, shape, lse, dims=(), mask="both"):
    """The problem for each of these tiles, as options. What the kernel serves: lse, dims, mask."""
    for tile in tiles:
        p = shape({"m": 64, "n": 64, "stages": 1, "splits": 1} | tile)
        words = "".join(f"--{knob} {tile[knob]} " for knob in space)
        yield words + options(served(p | {"lse": p["lse"] and lse}, dims, mask))


def runs(space, default, device, seed, mode, quick):
    """(name, candidates, shapes) of what is tried. --quick: one other value of each knob, drawn by the seed, in one
    shape. With the race detector: every value."""
    singles = values(space, default, seed)
    if quick:
        singles = random.Random(seed).sample(singles, len(singles))
        singles = list({name.partition("=")[0]: (name, tiles) for name, tiles in singles}.values())
    if quick or mode == "race":
        return [(*single, (race if mode == "race" else long_causal,)) for single in singles]
    return [(*single, SHAPES) for single in singles] + [
        (*pair, SHAPES[i % 2::2]) for i, pair in enumerate(pairs(space, default, seed, PAIRS[device]))]


def memory_runs(space, default, seed):
    """(tool, options, name, candidates, shape) on the emulator, for what a result need not show."""
    for name, tiles in values(space, default, seed):
        yield "race", "--race --schedule random ", name, tiles, race
        if name.startswith("vec="):
            yield "undefined", "--sanitize undefined ", name, tiles, misaligned
