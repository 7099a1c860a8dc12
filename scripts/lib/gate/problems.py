#!/usr/bin/env python3
"""The gate's problems, derived from the registry's rules and drawn from the whole contract. It runs nothing but the
command it is given: fa_bench, whose --select says which rule a problem is for, or what fails, to shrink its problem.

problems.py list --device cuda|emu [--m M] [--draws N] [--seed S] [--mode plain|sanitize|race|memory|undefined|own]
                 [--dims 64,128] [--mask both|causal|full]      one problem a line, as options of fa_bench; of these
                 dims and masks alone
problems.py rules --kernel NAME -- COMMAND        a JSON line per registry rule that fa_bench selects, and mask
problems.py shrink --problem OPTIONS -- COMMAND   the smallest problem for which COMMAND OPTIONS ends as it does now
problems.py pairs --draws N [--seed S]            problems of the sizes that are served, to be timed (pairs.sh)
"""
import argparse
import itertools
import json
import random
import shlex
import subprocess
import sys
import time

DISTS = ["normal", "uniform", "outlier", "sharp", "rising", "falling", "needle", "constant-v", "coded", "low",
         "cliff"]
DIMS = list(range(16, 257, 8))
DEFAULTS = {"batch": 1, "heads": 1, "kv_heads": 1, "seq": 16, "seq_kv": 16, "dim": 16, "causal": False, "scale": None,
            "dist": "normal", "strides": "packed", "misalign": 0, "lse": False, "seeds": None, "seed": None,
            "dtype": None, "timeout": None, "lengths": None, "window": None, "chunk": None, "softcap": None,
            "sinks": False, "alibi": False, "bias": False, "mask": None, "dim_v": None, "v_in_k": False,
            "page_size": None, "page_layout": None, "kv_dtype": None, "op": None, "deterministic": False}
FLAGS = ("causal", "lse", "sinks", "alibi", "bias", "v_in_k", "deterministic")
FEATURES = ("op", "lengths", "window", "chunk", "softcap", "mask", "dim_v", "page_size", "page_layout")
# Values that are no numbers.
WORDS = ("op", "dist", "strides", "dtype", "kv_dtype", "lengths", "window", "mask", "page_layout")
# Multiply-adds of one launch, by device and mode: what keeps a gate of one kernel within its minutes.
# Without a GPU a list for the sanitizers is only shown (--dry-run).
MOST_WORK = {("cuda", "plain"): 4e9, ("cuda", "sanitize"): 1e8, ("emu", "sanitize"): 1e8,
             ("emu", "plain"): 1.5e6, ("emu", "race"): 5e5}


def problem(**fields):
    made = DEFAULTS | fields
    if "kv_heads" not in fields:
        made["kv_heads"] = made["heads"]
    if "seq_kv" not in fields:
        made["seq_kv"] = made["seq"]
    assert made["heads"] % made["kv_heads"] == 0, made
    return made


def options(p):
    """As options of fa_bench; what is a default is left out, except shapes. FP8 takes dims in multiples of 16."""
    words = []
    if p["dtype"] == "e4m3":
        p = p | {key: -(-p[key] // 16) * 16 for key in ("dim", "dim_v") if p[key]}
    for key in ("batch", "heads", "kv_heads", "seq", "seq_kv", "dim"):
        words += ["--" + key.replace("_", "-"), str(p[key])]
    words += ["--" + key.replace("_", "-") for key in FLAGS if p[key]]
    for key in (*FEATURES, "scale", "dist", "strides", "misalign", "seeds", "seed", "dtype", "kv_dtype",
                "timeout"):
        if p[key] != DEFAULTS[key]:
            words += ["--" + key.replace("_", "-"), str(p[key])]
    return " ".join(words)


def parse(text):
    """The problem of a line of options; options that are not a problem's come back as words."""
    words, p, rest = shlex.split(text), {}, []
    while words:
        key = words.pop(0)
        name = key[2:].replace("-", "_")
        if name in FLAGS:
            p[name] = True
        elif name in DEFAULTS:
            value = words.pop(0)
            p[name] = value if name in WORDS else float(value) if name in ("scale", "softcap") else int(value)
        else:
            rest.append(key)
    base = {"batch": 2, "heads": 8, "seq": 512, "dim": 64}
    return problem(**(base | p)), rest


def of_fp8(line):
    """The same line in dims that FP8 takes."""
    p, rest = parse(line)
    return " ".join([*rest, options(p | {"dtype": "e4m3"})])


def work(p):
    return p["batch"] * p["heads"] * p["seq"] * p["seq_kv"] * p["dim"]


# Problems for the registry's rules. Which rule a problem selects, the program says.

def parsed(text):
    """A record; {} where there is none or it is cut off."""
    try:
        return json.loads(text)
    except ValueError:
        return {}


def records_of(command, lines=()):
    """The records that a fa_bench prints; lines: of options, for its --runs."""
    command = [*command, *(["--runs", "-"] if lines else []), "--json", "-"]
    text = subprocess.run(command, input="".join(f"{line}\n" for line in lines), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return [record for record in map(parsed, text.splitlines() if lines else [text]) if record]


def selections(command, made):
    """What fa_bench takes for each problem (--select): records with `rule`, from 1, `config` and `sm_count`."""
    records = records_of([*command, "--select", "--quiet"], [options(p) for p in made]) if made else []
    assert len(records) == len(made), f"{shlex.join(command)}: {len(records)} selections of {len(made)} problems"
    return records


def rule_candidates(rules, sm_count):
    """Problems at the edges of the rules' conditions, the cheapest first."""
    dims = sorted({rule["max_dim"] for rule in rules})
    dims = sorted(set(dims) | {d + 8 for d in dims if d + 8 <= 256})
    fills = {rule["max_fill_percent"] or 0 for rule in rules} | {0}
    tiles = {max(1, f * sm_count // 100 + extra) for f in fills for extra in (0, 1)}
    if any(rule.get("key_cost") for rule in rules):
        tiles |= {sm_count * w + extra for w in range(1, 13) for extra in (-1, 0, 1)}
    lengths = sorted({rule["config"]["m"] + 1 for rule in rules} | {1, 9, 257})
    keys = sorted({rule.get("min_keys") or 0 for rule in rules} - {0}) + [0]
    found = []
    for causal, dim, count, seq, group, least in itertools.product((False, True), dims, tiles, lengths, (1, 5), keys):
        heads = -(-count // -(-seq // 64))
        heads = -(-heads // group) * group
        found.append(problem(heads=heads, kv_heads=heads // group, seq=seq, seq_kv=max(least, seq), dim=dim,
                             causal=causal))
    return sorted(found, key=work)


def rule_problems(rules, command, cheapest=False, dtype=None):
    """For each rule that the command can select and each mask: the cheapest problem that selects it, with more rows
    than a tile has where there is one (cheapest: without that wish). {(index of the rule, causal): problem}. FP8 has
    rules of its own, and no gradients."""
    if not rules:
        return {}
    best = {}
    sm_count, candidates = selections(command, [problem()])[0]["sm_count"], []
    for op in (None, "backward") if dtype != "e4m3" else (None,):
        own = [rule for rule in rules if (rule.get("op") == "backward") == bool(op)]
        candidates += [p | {"op": op, "dtype": dtype} for p in rule_candidates(own, sm_count)] if own else []
    for p, record in zip(candidates, selections(command, candidates)):
        if record["rule"]:
            key = record["rule"] - 1, p["causal"]
            short = not cheapest and p["seq"] <= record["config"]["m"]
            if key not in best or best[key][0] and not short:
                best[key] = short, p
    found = {key: best[key][1] | {"seeds": 1} for key in sorted(best)}
    # With a second tile of keys, which begins but does not end, where that selects the same rule.
    longer = [p | {"seq_kv": max(p["seq_kv"] + 19, rules[index]["config"]["n"] + 3)} for (index, _), p in found.items()]
    for key, more, record in zip(list(found), longer, selections(command, longer)):
        if record["rule"] == key[0] + 1:
            found[key] = more
    return found


# Problems that each show one class of fault, at the smallest size that shows it.

def classes(device, mode, m):
    def both(**fields):
        return [problem(causal=causal, **fields) for causal in (False, True)]
    far = [problem(batch=2, heads=2, seq=9, seq_kv=20, dim=16, strides="far"),       # offsets beyond 32 bits
           problem(batch=1, heads=3, seq=9, seq_kv=20, dim=16, strides="far", causal=True),
           problem(batch=1, heads=1, seq=21, seq_kv=33, dim=16, strides="far")]
    made = []
    rows = -(-32 // m) * m # tiles of at least 32 rows in all: more than one key tile of most kernels under a mask
    if mode == "own":
        return own_classes(rows)
    if mode == "memory": # beside the plain gate: what the result on a GPU does not show: a race, a read outside the
        # tensors, and, with fewer keys than a tile, a read of shared memory that nothing wrote
        return [problem(heads=2, kv_heads=1, seq=rows + 1, seq_kv=67, dim=40, causal=True, seeds=1),
                problem(heads=2, seq=29, seq_kv=131, dim=64, seeds=1), problem(seq=9, seq_kv=5, dim=24, seeds=1)]
    if mode == "undefined": # offsets that overflow where the compiler widens them; an address that is misaligned alone
        return [p | {"seeds": 1} for p in far] + [
            problem(batch=2, heads=2, seq=9, seq_kv=35, dim=64, strides="odd", seeds=15)]
    made += both(batch=5, heads=12, kv_heads=4, seq=9, seq_kv=37, dim=32)            # groups of three, five batches
    made += both(batch=1, heads=10, kv_heads=2, seq=rows + 1, seq_kv=2 * rows + 3, dim=40, strides="padded")
    made += both(batch=2, heads=3, seq=29, seq_kv=11, dim=72, strides="bshd")        # rows without keys
    made += [problem(heads=22, kv_heads=2, seq=5, seq_kv=21, dim=16)]                # groups of eleven
    made += [problem(batch=2, heads=2, seq=max(1, rows - 1), dim=96, scale=0.7, causal=True),
             problem(batch=2, heads=2, seq=17, seq_kv=131, dim=64, scale=0.02, dist="sharp"),
             problem(heads=2, kv_heads=1, seq=19, seq_kv=150, dim=128, dist="needle", scale=1.5, strides="padded"),
             problem(batch=2, heads=6, kv_heads=3, seq=29, seq_kv=11, dim=40, dist="low", lse=True, causal=True,
                     strides="padded"),
             problem(batch=2, heads=2, seq=rows + 1, seq_kv=70, dim=88, dist="sharp", lse=True, strides="bshd"),
             problem(heads=2, seq=40, dim=48, dist="low", causal=True),
             problem(heads=2, seq=33, seq_kv=97, dim=256, misalign=1, causal=True),
             problem(heads=2, seq=33, seq_kv=97, dim=24, misalign=4, strides="padded"),
             problem(seq=1, dim=16), problem(seq=1, seq_kv=65, dim=8 * 13, causal=True)]
    made += both(batch=3, heads=2, kv_heads=1, seq=rows + 1, seq_kv=13, dim=32)      # all keys of a batch in one tile
    made += [problem(heads=2, seq=17, seq_kv=70, dim=64, scale=10000)]               # scores beyond FP16
    # Off 16 bytes in one stride of one tensor or of all: 15 seeds try each (src/input/layout.h).
    made += [problem(batch=2, heads=4, kv_heads=2, seq=19, seq_kv=37, dim=40, strides="odd", seeds=15, causal=True),
             problem(batch=2, heads=2, seq=rows + 1 if mode == "plain" else 9, seq_kv=35, dim=64, strides="odd",
                     seeds=15)]
    # Of seeds from 42 on the second draws rising logits, from 43 on needles (src/check/draw.c).
    made = [p | {"seed": 43} if i % 4 > 1 else p for i, p in enumerate(made)]
    if mode == "race":
        return made
    made += far
    # Where a seed is refused, the later ones of its run are not tried: a kernel that copies K by TMA refuses K off 16
    # bytes, and has O to write yet. So each tensor alone, by its seeds below 15.
    made += [problem(batch=2, heads=2, seq=9, seq_kv=20, dim=40, strides="odd", seed=seed, seeds=1)
             for seed in range(15) if seed % 5]
    # Whole tiles of rows without a key: their log-sum-exp is -infinity, though nothing of it was computed.
    made += [problem(heads=4, kv_heads=2, seq=2 * rows + 5, seq_kv=5, dim=dim, lse=True, causal=True, seeds=1)
             for dim in (64, 200)]
    # Maxima that move far with every tile of keys, in whatever order a kernel takes them.
    made += [problem(heads=2, kv_heads=1, seq=19, seq_kv=300, dim=104, dist=dist, scale=1.0)
             for dist in ("rising", "falling")]
    # Logits of +-20000: a maximum that starts too high, a finite mask, products of Q and K kept in FP16.
    # Under the mask some rows see low logits alone, and what they do not see is high.
    made += [problem(heads=4, seq=19, seq_kv=150, dim=64, dist="cliff", seeds=1),
             problem(heads=4, seq=70, seq_kv=75, dim=64, dist="cliff", seeds=1, causal=True)]
    # Parts of a split without a key, beside parts whose logits are low.
    made += [problem(heads=4, seq=5, seq_kv=keys, dim=16, dist="cliff", seeds=1) for keys in (1, 4, 9)]
    # Full tiles of rows, and the diagonal everywhere in a tile of keys.
    made += [problem(seq=rows * (1 + (m <= 128)), seq_kv=max(1, rows * (1 + (m <= 128)) + shift), dim=16, causal=True,
                     seeds=1) for shift in (0, 9, 25, 41, 57, -7, -23)]
    # 41 times the FP32 reciprocal of 41 is less than 1: the tile of a block is found by a division.
    made += [problem(heads=2, seq=41 * m, seq_kv=5, dim=16, seeds=1)]
    made += [problem(seq=3, seq_kv=1300, dim=16), problem(seq=2, seq_kv=4200, dim=16, dist="uniform", causal=True),
             problem(heads=2, kv_heads=1, seq=3, seq_kv=700, dim=200, dist="rising"), # many keys of wide heads
             problem(seq=1300, seq_kv=40, dim=16, causal=True), problem(seq=4200, seq_kv=5, dim=16, dist="needle"),
             problem(seq=66000, seq_kv=2, dim=16, seeds=1),                          # rows beyond 16 bits
             problem(heads=300, seq=1, seq_kv=5, dim=16, seeds=1),                   # heads beyond 256
             problem(heads=305, kv_heads=5, seq=1, seq_kv=5, dim=16, seeds=1),       # groups of 61
             problem(seq=1, seq_kv=66000, dim=16, dist="rising", seeds=1)]           # the last keys weigh most
    if device == "emu":
        made = [p | {"seeds": p["seeds"] or 3} for p in made]
    if device == "cuda" and mode == "plain":
        made += [problem(batch=33, heads=2000, seq=1, seq_kv=1, dim=16, seeds=1),    # blocks beyond 65536
                 problem(batch=3, heads=1, seq=300, seq_kv=70001, dim=64, seeds=1, causal=True),
                 problem(heads=2, seq=8192, dim=64, causal=True, seeds=3),
                 problem(heads=1, seq=65, seq_kv=70001, seeds=1)]
    return made


def own_classes(rows):
    """Of a file of one's own alone: kernels of the registry have gates on a GPU and with --dtype bf16.
    Grids beyond 65536 blocks take some seconds with small blocks, and with large ones more than there is time for."""
    bf16 = [problem(batch=2, heads=6, kv_heads=2, seq=rows + 1, seq_kv=2 * rows + 3, dim=40, causal=True,
                    strides="padded", seeds=3),
            problem(heads=4, kv_heads=2, seq=19, seq_kv=131, dim=104, dist="cliff", strides="bshd", seeds=1),
            problem(heads=2, seq=rows + 1, seq_kv=70, dim=64, misalign=1, lse=True, seeds=3)]
    return [p | {"dtype": "bf16"} for p in bf16] + [
        problem(batch=3, heads=21847, seq=1, seq_kv=16, dim=16, seeds=1) | {"timeout": 60}]


# Draws over the whole contract.

class Deck:
    """Values in a shuffled order, each once before any comes again: few draws cover each dimension evenly."""

    def __init__(self, values, rng):
        self.values, self.rng, self.left = list(values), rng, []

    def next(self):
        if not self.left:
            self.left = self.rng.sample(self.values, len(self.values))
        return self.left.pop()


def drawn(count, seed, device, mode, m):
    rng = random.Random(seed)
    long = device == "cuda" and mode == "plain"
    lengths = [1, 2, 7, 8, 16, 31, 33, 64, 65, 100, max(1, m - 1), m, m + 1, 2 * m, 2 * m + 5] + (
        [113, 255, 799, 1023, 1024, 1025, 2047, 4099, 8192] if long else [113])
    deck = {key: Deck(values, rng) for key, values in {
        "batch": [1, 1, 2, 3, 4, 5], "kv_heads": [1, 2, 3, 4, 5, 8], "group": range(1, 13), "seq": lengths,
        "keys": lengths + ["same", "same", "tail", "tail"], "dim": DIMS, "causal": [False, True], "dist": DISTS,
        "strides": ["packed", "padded", "bshd", "odd"], "misalign": [0, 0, 0, 0, 1, 2, 4, 7],
        "factor": [None, None, 0.1, 0.5, 2.0, 8.0]}.items()}
    made = []
    for _ in range(count):
        d = {key: values.next() for key, values in deck.items()}
        keys = {"same": d["seq"], "tail": d["seq"] + rng.randrange(1, 2 * m)}.get(d["keys"], d["keys"])
        p = problem(batch=d["batch"], heads=d["kv_heads"] * d["group"], kv_heads=d["kv_heads"], seq=d["seq"],
                    seq_kv=keys, dim=d["dim"], causal=d["causal"], dist=d["dist"], strides=d["strides"],
                    misalign=d["misalign"], scale=d["factor"] and round(d["factor"] / d["dim"] ** 0.5, 6),
                    seed=rng.randrange(1, 1 << 30), seeds=3)
        made.append(within(p, MOST_WORK[device, mode], rng))
    return made + [p | {"lse": True} for p in made[::4]] # some once more: not every kernel writes it


def within(p, most, rng):
    """Smaller in a random dimension until the work fits; the residues of lengths stay what they are where they can."""
    p = dict(p)
    while work(p) > most:
        key = rng.choice(["batch", "heads", "seq", "seq_kv"])
        if key == "heads" and p["kv_heads"] > 1:
            p["heads"] = p["heads"] // p["kv_heads"] * (p["kv_heads"] - 1)
            p["kv_heads"] -= 1
        elif key == "heads":
            p["heads"] = max(1, p["heads"] // 2)
        else:
            p[key] = max(1, p[key] - 64 if p[key] > 128 else p[key] // 2)
    return p


# Draws of what is timed.

MOST_PAIRS = 2**34 # of query and key, over all batches and heads


def timed_draws(count, seed):
    """Sizes are even on a logarithmic scale: as many of 64 to 1024 queries as of 1024 to 16384."""
    rng = random.Random(seed)

    def size(least, most):
        return round(least * (most / least) ** rng.random())
    made = []
    while len(made) < count:
        group = rng.randint(1, 8)
        kv_heads = max(1, size(1, 64) // group)
        seq = size(64, 16384)
        p = problem(batch=size(1, 64), heads=kv_heads * group, kv_heads=kv_heads, seq=seq,
                    seq_kv=size(64, 16384) if rng.random() < 1 / 3 else seq, dim=rng.randrange(32, 257, 8),
                    causal=rng.random() < 0.5)
        if work(p) <= MOST_PAIRS * p["dim"]:
            made.append(p)
    return made


def smaller(p):
    """Problems one step simpler, the largest step first."""
    for key in (*FEATURES[1:], *FLAGS[2:], "scale", "dist", "strides", "misalign", "lse", "causal"):
        if p[key] != DEFAULTS[key]:
            yield p | {key: DEFAULTS[key]}
    its = (p["lengths"] or "").split(",")
    for i in range(len(its)) if len(its) > 1 else ():  # without one of the sequences
        yield p | {"lengths": ",".join(its[:i] + its[i + 1:])}
    if p["seeds"] != 1:
        yield p | {"seeds": 1}
    group = p["heads"] // p["kv_heads"]
    for heads, kv_heads in ((1, 1), (group, 1), (2, 1), (2, 2), (p["kv_heads"], p["kv_heads"])):
        if heads < p["heads"]:
            yield p | {"heads": heads, "kv_heads": kv_heads}
    for key in ("batch", "seq", "seq_kv"):
        for value in sorted({1, 2, p[key] // 4, p[key] // 2, p[key] * 3 // 4, p[key] - 1}):
            if 0 < value < p[key]:
                yield p | {key: value}
    for dim in (16, 32, 64, 128):
        if dim < p["dim"]:
            yield p | {"dim": dim}


def shrink(p, fails, seconds):
    """The simplest problem for which `fails` holds, by single steps, within a time."""
    end, at = time.monotonic() + seconds, p
    while time.monotonic() < end:
        for candidate in smaller(at):
            if time.monotonic() > end:
                return at
            if fails(candidate):
                at = candidate
                break
        else:
            return at
    return at


def served(p, dims, mask):
    """The same problem in a dim that the kernel serves, the next above where there is one; with its only mask. A
    problem that asks for a dim of its own kind (far from a multiple of 32, say) is another then, but still runs."""
    if not dims:
        return p
    dim = next((dim for dim in dims if dim >= p["dim"]), dims[-1])
    return p | {"dim": dim, "causal": {"both": p["causal"], "causal": True, "full": False}[mask]}


def listed(device="emu", mode="plain", m=64, draws=0, seed=1, dims=(), mask="both", of_rules=()):
    """One problem a line, as options of fa_bench."""
    made = [] if mode == "sanitize" else classes(device, mode, m)
    if mode not in ("memory", "undefined", "own"):
        made += [*of_rules, *drawn(draws, seed, device, mode, m)]
    return list(dict.fromkeys(options(served(p, dims, mask)) for p in made))


def say_rules(kernel, command):
    rows = records_of([command[0], "--list-kernels"])[0]
    rules = next(row for row in rows if row["name"] == kernel).get("rules")
    for (index, causal), p in rule_problems(rules, [*command, "--kernel", kernel]).items():
        print(json.dumps({"rule": index, "causal": causal, "problem": options(p)}))


def shrunk(text, command, seconds):
    """The smallest problem for which the command ends as it does for this line of options, with what else the line asks
    for; and the code."""
    p, rest = parse(text)

    def words(of):
        return rest + options(of).split()

    def code(of):
        return subprocess.run(command + words(of), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode
    want = code(p)
    return shlex.join(words(shrink(p, lambda candidate: code(candidate) == want, seconds) if want else p)), want


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "rules", "shrink", "pairs"])
    parser.add_argument("--device", choices=["cuda", "emu"], default="emu")
    parser.add_argument("--mode", choices=["plain", "sanitize", "race", "memory", "undefined", "own"], default="plain")
    for name, default in (("m", 64), ("draws", 0), ("seed", 1)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--dims", help="the only ones that a file of one's own serves, comma-separated")
    parser.add_argument("--mask", choices=["both", "causal", "full"], default="both")
    parser.add_argument("--kernel")
    parser.add_argument("--problem")
    parser.add_argument("--seconds", type=float, default=60)
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, command, lines = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:], []
    if args.what == "list":
        dims = sorted(int(dim) for dim in args.dims.split(",")) if args.dims else []
        lines = listed(args.device, args.mode, args.m, args.draws, args.seed, dims, args.mask)
    elif args.what == "pairs":
        lines = map(options, timed_draws(args.draws, args.seed))
    elif args.what == "rules":
        say_rules(args.kernel, command)
    else:
        line, code = shrunk(args.problem, command, args.seconds)
        print(line)
        return 1 if code == 0 else 0
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
