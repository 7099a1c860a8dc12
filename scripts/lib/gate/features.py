"""Problems beyond dense forward for what a kernel serves, alone and in drawn pairs; and what its needs leave out.

Words are those of a record's `serves` and `needs`.
"""
import itertools
import random

from problems import Deck, options, parse, problem

# What is asked of each feature. Most go with a drawn shape; the others say theirs: rows that see nothing, Sq > Sk.
ALONE = {
    "varlen": [{"lengths": "draw", "batch": 9}, {"lengths": "17,0,33:5,5:33,1,0:7,3:0"},
               {"lengths": "1:65,1:0,1:1,1:130"}, {"lengths": "0,0:9,384:3,1"}, {"lengths": "draw", "batch": 2},
               {"lengths": "129:64,0,64:65,1:1", "strides": "padded"}],
    "window": [{"window": "9,3"}, {"window": "3,0", "seq": 70, "seq_kv": 37}, {"window": "500,500"},
               {"window": "-1,4", "seq": 45, "seq_kv": 20, "causal": False}, {"window": "7,-1"}, {"window": "0,0"},
               {"window": "-1,0", "causal": False}, {"window": "20,0", "seq": 5, "seq_kv": 140},
               {"window": "20,-1", "seq": 70, "seq_kv": 430, "dim": 128}],  # tiles of keys that no row sees
    "chunk": [{"chunk": 20}, {"chunk": 7, "seq": 70, "seq_kv": 37}, {"chunk": 1}, {"chunk": 1000},
              {"chunk": 64, "seq": 66, "seq_kv": 130}, {"chunk": 50, "seq": 30, "seq_kv": 330, "dim": 96}],
    "softcap": [{"softcap": 2.0}, {"softcap": 30.0, "dist": "sharp"}, {"softcap": 0.25}],
    "sink": [{"sinks": True}, {"sinks": True, "seq": 70, "seq_kv": 37, "causal": True, "dist": "low"}],
    "alibi": [{"alibi": True}, {"alibi": True, "heads": 6, "kv_heads": 3}],
    "bias": [{"bias": True}, {"bias": True, "batch": 3, "heads": 6, "kv_heads": 2}],
    "mask": [{"mask": "tree", "seq": 12, "seq_kv": 70, "strides": "bshd"}, {"mask": "tree", "seq": 40, "seq_kv": 40},
             {"mask": "tree", "lengths": "12:70,40:45,5:5"}],
    "dim_v": [{"dim": 32, "dim_v": 24}, {"dim": 72, "dim_v": 40, "v_in_k": True}, {"dim": 192, "dim_v": 128},
              {"dim": 64, "dim_v": 128}],
    "backward": [{"op": "backward"}, {"op": "backward", "seq": 70, "seq_kv": 37, "causal": True}],
    # Three tiles of keys and more: the sum of two is the same in any order.
    "deterministic": [{"op": "backward", "deterministic": True, "seq": 20, "seq_kv": 400, "dim": 32},
                      {"op": "backward", "deterministic": True, "seq": 70, "seq_kv": 530, "causal": True}],
    # Few powers of two: a page is found by a division. The second has pages beyond 16 bits.
    "paged": [{"page_size": 16}, {"page_size": 1, "page_layout": "hnd", "batch": 1, "heads": 2, "kv_heads": 1, "seq": 1,
                                  "seq_kv": 23000, "dim": 16},
              {"page_size": 96, "page_layout": "hnd"}, {"page_size": 7}, {"page_size": 24, "seq": 1, "seq_kv": 130},
              {"page_size": 40, "lengths": "draw", "batch": 5},
              {"page_size": 5, "window": "20,0", "causal": True, "seq": 3, "seq_kv": 90},
              {"page_size": 12, "sinks": True, "lengths": "4:130,1:0,2:33,16:16", "causal": True},
              {"page_size": 48, "mask": "tree", "seq": 9, "seq_kv": 70}],
    # Sums that lose low bits show where V has a mean and there are many keys; 64 rows are judged by their mean error.
    "fp8": [{"dtype": "e4m3"}, {"dtype": "e4m3", "dist": "outlier"}, {"dtype": "e4m3", "seq": 1, "seq_kv": 700},
            {"dtype": "e4m3", "dist": "mean", "batch": 1, "heads": 4, "kv_heads": 2, "seq": 16, "seq_kv": 8192,
             "dim": 16, "causal": False}, {"dtype": "e4m3", "batch": 3, "heads": 6, "kv_heads": 3, "dist": "needle"}],
    "fp8_kv": [{"kv_dtype": "e4m3"}, {"kv_dtype": "e4m3", "seq": 1, "seq_kv": 300}, {"kv_dtype": "e4m3", "dim": 24},
               {"kv_dtype": "e4m3", "batch": 3, "heads": 6, "kv_heads": 3, "dist": "outlier"}],
}
# Rows so far from each other that offsets take more than 32 bits.
FAR = {"batch": 1, "heads": 1, "kv_heads": 1, "seq": 21, "seq_kv": 33, "dim": 16, "strides": "far"}
FAR_ALONE = {"window": {"window": "9,3"}, "varlen": {"lengths": "21:33"}}
PAIRS = {("cuda", "plain"): 90, ("emu", "plain"): 8, ("emu", "race"): 3}


def shapes(rng, bf16):
    """Drawn shapes, each value of a dimension once before any comes again."""
    deck = {key: Deck(values, rng) for key, values in {
        "heads": [(4, 2), (6, 1), (3, 3), (2, 2)], "rows": [(45, 70), (70, 37), (1, 65), (33, 33), (64, 129), (17, 5)],
        "causal": [False, True], "lse": [False, True], "strides": ["packed", "padded", "bshd"], "batch": [1, 2, 3],
        "dim": [32, 64, 40], "dtype": [None, "bf16"] if bf16 else [None]}.items()}
    while True:
        d = {key: values.next() for key, values in deck.items()}
        (heads, kv_heads), (seq, seq_kv) = d.pop("heads"), d.pop("rows")
        yield problem(heads=heads, kv_heads=kv_heads, seq=seq, seq_kv=seq_kv, **d)


def drawn(serves, device, mode, seed, quick=False, bf16=False, lse=True, page_rows=1, backward=False):
    """(words of the features, problem): each alone, of which the emulator has a few, and pairs. quick: one of each."""
    words, rng = [word for word in ALONE if word in serves], random.Random(seed)
    asks = {"window": "window", "sinks": "sink", "mask": "mask", "lengths": "varlen"}  # features of other fields
    alone = {word: [one for one in ALONE[word] if all(asks.get(key) in (None, word, *serves) for key in one)]
             for word in words}
    base, few, made = shapes(rng, bf16), quick or mode != "plain", []
    for word in words:
        its = rng.sample(alone[word], len(alone[word]))
        made += [((word,), one) for one in its[:1 if few else 2 if device == "emu" else None]]
    pairs = [] if quick else list(itertools.combinations(words, 2))
    turns = rng.sample(pairs, len(pairs)) * 2
    decks = {word: Deck(alone[word], rng) for word in words}
    made += [(pair, decks[pair[0]].next() | decks[pair[1]].next()) for pair in turns[:PAIRS.get((device, mode), 0)]]
    made += [((word,), FAR | one) for word, one in FAR_ALONE.items() if word in words and mode == "plain" and not quick]
    for pair, fields in made:
        p = next(base) | fields | {"seed": rng.randrange(1, 1 << 30), "seeds": 3 if mode == "plain" else 1}
        if p["page_size"]:
            p["page_size"] = -(-p["page_size"] // page_rows) * page_rows
        if backward or p["op"]:  # what there are no gradients of
            if p["page_size"] or p["bias"] or p["mask"]:
                continue
            p |= {"op": None if backward else "backward", "lse": False, "v_in_k": False}
        if p["v_in_k"]:
            p["dim"] = max(p["dim"], p["dim_v"])
        if p["mask"]:  # the queries are the last keys
            p["seq_kv"] = max(p["seq"], p["seq_kv"])
        yield pair, p | {"lse": p["lse"] and lse}


# What a kernel needs: words of FA_NEEDS.

def sequences(p):
    """(queries, keys) of each sequence; drawn ones by a list in their place."""
    if not p["lengths"]:
        return [(p["seq"], p["seq_kv"])]
    if p["lengths"] == "draw":
        rows = [(p["seq"], p["seq_kv"]), (0, 0), (1, 1)]
        rows += [(p["seq"] * (i % 7) // 7, p["seq_kv"] * (i % 5) // 5) for i in range(3, p["batch"])]
        return rows[:p["batch"]]
    pairs = [one.partition(":") for one in p["lengths"].split(",")]
    return [(int(q), int(k or q)) for q, _, k in pairs]


def excluded(p, needs, m, n):
    """Why a kernel with these needs cannot have the problem; "" where it can."""
    rows = sequences(p)
    drawn_unlike = p["lengths"] == "draw"  # by the bench, of any lengths
    why = {"packed": p["strides"] != "packed" and f"packed tensors: not --strides {p['strides']}",
           "mha": p["heads"] != p["kv_heads"] and
           f"a K/V head for each query head: not {p['kv_heads']} for {p['heads']}",
           "self": (drawn_unlike or any(q != k for q, k in rows)) and "as many keys as queries",
           "aligned": (p["misalign"] or p["strides"] == "odd") and "tensors and rows on 16-byte boundaries",
           "whole_m": (drawn_unlike or any(q % m for q, _ in rows)) and f"query rows in multiples of m ({m})",
           "whole_n": (drawn_unlike or any(k % n for _, k in rows)) and f"keys in multiples of n ({n})"}
    return next((f"needs {text}" for word, text in why.items() if text and word in needs), "")


def fitted(p, needs, m, n, most):
    """The problem like this one that a kernel with these needs serves, of no more work than `most` where it grows."""
    p, rows = dict(p), sequences(p)
    if "packed" in needs or "aligned" in needs and p["strides"] == "odd":
        p["strides"] = "packed"
    if "aligned" in needs:
        p["misalign"] = 0
    if "mha" in needs:
        p["kv_heads"] = p["heads"]
    step_q = m if "whole_m" in needs else 1
    step_k = n if "whole_n" in needs else 1
    if "self" in needs:
        step_q = step_k = max(step_q, step_k) if max(step_q, step_k) % min(step_q, step_k) == 0 else step_q * step_k

    def whole(length, step):
        return -(-length // step) * step

    def fit(q, k):
        if "self" in needs:
            one, area = max(q, k), p["batch"] * p["heads"] * p["dim"]
            q = k = one if one * one * area <= most else min(q, k)
        return whole(q, step_q), whole(k, step_k)
    if p["lengths"] and {"self", "whole_m", "whole_n"} & set(needs):
        p["lengths"] = ",".join("{}:{}".format(*fit(q, k)) for q, k in rows)
    elif not p["lengths"]:
        p["seq"], p["seq_kv"] = fit(p["seq"], p["seq_kv"])
    return p


def fitted_line(line, needs, m, n, most, only):
    """(the line of options that such a kernel is tried with, why it is not that of the problem or ""). only: fields of
    the only problems that it serves."""
    p, rest = parse(line)
    tile = dict(zip(rest, rest[1:]))
    m, n = int(tile.get("--m", m)), int(tile.get("--n", n))
    p |= only
    if p["seq_kv"] * p["dim"] > 4e6:  # of a wide head, half a minute of the emulator
        p["seq_kv"] //= 10
    why = excluded(p, needs, m, n)
    if not why and not only:
        return line, ""
    return " ".join([*rest, options(fitted(p, needs, m, n, most) if why else p)]), why
