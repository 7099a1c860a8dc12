#!/usr/bin/env python3
"""How good is the tile that the registry's rules choose for wgmma up to dim 112, by tiles timed on an H200.

usage: studies/tile_costs.py [--worst N] [RECORDS...]

RECORDS: fa_bench's JSON lines, also .gz (default: tile_costs.jsonl.gz and serving_records.jsonl.gz here). A problem
counts when two tiles or more of wgmma were timed for it with all keys in one part, or one paired with another, and
the rule that is chosen has a key_cost. Prints by dim and mask: problems, how many have a time of today's choice,
its time over that of the fastest tile timed (geometric mean and most), the time of the tile that was the choice when
the record was made over today's; then the N worst. The rules are of ./fa_bench (FA_BENCH names another binary).
"""
import argparse
import collections
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts/lib/gate"))
import problems  # noqa: E402

DIM_GROUPS = (("32 to 64", 64), ("72, 80", 80), ("88 to 112", 112))


def records(path):
    with (gzip.open(path, "rt") if str(path).endswith(".gz") else open(path, encoding="utf-8")) as lines:
        for line in lines:
            yield json.loads(line)


def tile(config):
    return config["m"], config["n"]


def times_of(paths):
    """{problem: {tile: [us]}} and {problem: us of the tile that the rules of that day chose}."""
    times, chosen = collections.defaultdict(lambda: collections.defaultdict(list)), {}
    for record in (r for path in paths for r in records(path)):
        if record.get("status") != "pass" or not record.get("timing") or record.get("variant") != "wgmma":
            continue
        p, us, vs = record["problem"], record["timing"]["p50_us"], record.get("vs") or {}
        key = (p["batch"], p["heads"], p["kv_heads"], p["seq_q"], p["seq_kv"], p["dim"], p["causal"])
        paired = vs.get("kernel") == "wgmma" and vs.get("config", {}).get("splits") == 1
        if record["config"]["splits"] != 1 or (vs and not paired):
            continue
        times[key][tile(record["config"])].append(us)
        if paired:
            times[key][tile(vs["config"])].append(us * vs["ratio"])
            chosen.setdefault(key, us * vs["ratio"])
        elif " --m " not in record["provenance"]["command"]:
            chosen.setdefault(key, us)
    return times, chosen


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("records", nargs="*")
    options = parser.parse_args()
    if options.help:
        print(__doc__.strip())
        return
    bench = os.environ.get("FA_BENCH", str(HERE.parent / "fa_bench"))
    registry = json.loads(subprocess.run([bench, "--list-kernels", "--json", "-"], check=True, capture_output=True,
                                         text=True).stdout)
    rules = next(row["rules"] for row in registry if row["name"] == "wgmma")
    paths = options.records or [HERE / "tile_costs.jsonl.gz", HERE / "serving_records.jsonl.gz"]
    times, chosen = times_of(paths)
    groups = collections.defaultdict(list)
    shapes = [dict(zip(("batch", "heads", "kv_heads", "seq", "seq_kv", "dim", "causal"), key)) for key in times]
    selections = problems.selections([bench, "--kernel", "wgmma", "--arch", "sm_90a"],
                                     [problems.problem(**p) for p in shapes])
    for key, p, selection in zip(times, shapes, selections):
        by_tile, rule = times[key], selection["rule"]
        if len(by_tile) < 2 or not rule or not rules[rule - 1].get("key_cost"):
            continue
        choice = tile(selection["config"])
        us = {each: statistics.median(values) for each, values in by_tile.items()}
        name = next(name for name, most in DIM_GROUPS if p["dim"] <= most)
        over = us[choice] / min(us.values()) if choice in us else None
        gain = chosen[key] / us[choice] if choice in us and key in chosen else None
        groups[name, "causal" if p["causal"] else "full"].append((over, gain, key, choice, min(us, key=us.get)))
    print("dims\tmask\tproblems\ttimed\tover fastest\tmost\tgain over the choice before")
    for (name, mask), rows in sorted(groups.items()):
        known = [row for row in rows if row[0]]
        gains = [row[1] for row in known if row[1]]
        print(f"{name}\t{mask}\t{len(rows)}\t{len(known)}\t{statistics.geometric_mean(r[0] for r in known):.4f}\t"
              f"{max(row[0] for row in known):.3f}\t{statistics.geometric_mean(gains):.4f}")
    print(f"the {options.worst} worst: batch, heads, K/V heads, queries, keys, dim, causal; choice; fastest")
    worst = sorted((row for rows in groups.values() for row in rows if row[0]), key=lambda row: -row[0])
    for over, _, key, choice, fastest in worst[:options.worst]:
        print(f"{over:.3f}\t{key}\t{choice}\t{fastest}")


if __name__ == "__main__":
    main()
