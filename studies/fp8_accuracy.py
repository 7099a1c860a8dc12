#!/usr/bin/env python3
"""What FP8 costs in accuracy: the table of docs/features.md, as Markdown. python3 studies/fp8_accuracy.py [FA_BENCH]

Runs `light` on the CPU emulator (a minute; no GPU) on the same drawn numbers in BF16, with an FP8 cache, and in FP8.
The numbers are RMS differences over the RMS of O: of what was quantised against what was not, and, for P and one-level
sums, against FP64 on the quantised tensors. One-level sums: the wrong kernel fp8_3_one_level_sum_light of
tests/wrong."""
import array
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "fa_bench")
SHAPE = "--batch 1 --heads 4 --kv-heads 2 --dim 32 --seq 16".split()
HOW = "--seeds 1 --device emu --no-ptxas --check cpu --quiet".split()
TILE = "--m 32 --n 64 --warps 8 --vec 8".split()


def run(*words):
    """The record of a run, and its output as floats."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([BENCH, *SHAPE, *HOW, *TILE, *words, "--dump", folder, "--json", "-"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        raw = pathlib.Path(folder, "o.npy").read_bytes()
    bits = array.array("H", raw[10 + raw[8] + 256 * raw[9]:])
    floats = array.array("f", array.array("I", (b << 16 for b in bits)).tobytes())  # BF16
    return json.loads(done.stdout)["check"]["references"][0], floats


def rms(numbers):
    return math.sqrt(sum(x * x for x in numbers) / len(numbers))


def main():
    with tempfile.TemporaryDirectory() as folder:
        name = "fp8_3_one_level_sum_light"
        subprocess.run([sys.executable, ROOT / "tests/wrong/make.py", folder, "--named", name], check=True,
                       stdout=subprocess.DEVNULL)
        one_level = f"{folder}/{name}.cu"
        print("| `--dist` | keys | FP8 K and V | FP8 Q, K and V | P in E4M3 | one-level sums |")
        print("|---|---|---|---|---|---|")
        for dist in ("normal", "mean", "outlier", "sharp"):
            for keys in (512, 8192):
                where = ["--seq-kv", str(keys), "--dist", dist]
                _, wide = run("--kernel", "light", "--dtype", "bf16", *where)
                _, cache = run("--kernel", "light", "--dtype", "bf16", "--kv-dtype", "e4m3", *where)
                said, fp8 = run("--kernel", "light", "--dtype", "e4m3", *where)
                lossy, _ = run("--source", one_level, "--dtype", "e4m3", *where)
                parts = [rms([a - b for a, b in zip(x, wide)]) / rms(wide) for x in (cache, fp8)]
                parts += [said["baseline_rmse"] / rms(fp8), lossy["rmse"] / rms(fp8)]
                print(f"| {dist} | {keys} | " + " | ".join(f"{100 * part:.2f} %" for part in parts) + " |", flush=True)


if __name__ == "__main__":
    main()
