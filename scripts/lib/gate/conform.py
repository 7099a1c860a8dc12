"""What the gate compares beside right results: the emulator's primitives with the GPU's; speed with the baseline."""
import glob
import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

from problems import parsed
from subjects import read, seconds_of, write_json


def conformance_list(arch):
    """(name, file, number): the number is that of the case in a file of right kernels, else None. A file's first line
    says which architecture it needs, where sm_80 is not enough."""
    made = []
    for folder, start, prefix in (("conform", "", ""), ("ptx", "", "ptx_"), ("hopper", "conform_", "hopper_")):
        if folder != "hopper" or arch == "sm_90":
            for file in sorted(glob.glob(f"tests/emu/{folder}/{start}*.cu")):
                needs = re.search(r" needs sm_(\d+)", read(file).partition("\n")[0])
                if not needs or int(needs[1]) <= int(arch[3:]):
                    made.append((prefix + os.path.basename(file)[len(start):-3], file, None))
    for file in sorted(glob.glob("tests/emu/hopper/clean*.cu")) if arch == "sm_90" else []:
        for number, case in enumerate(re.findall(r"^[A-Z_]*CASE\(\s*([a-z_0-9]+)", read(file), re.M)):
            made.append((f"hopper_{os.path.basename(file)[:-3]}_{case}", file, number))
    return made


def words_of(emu_case, to, file, number, device):
    """The hash of what a kernel wrote and what its process said; no hash where it failed its own comparisons. Of the
    right kernels of tests/emu/hopper only that they pass: what they leave behind may depend on the order."""
    command = [emu_case, file, "--device", device, "--schedule", "2"]  # 2: the random schedule
    command += ["--out", to] if number is None else ["--case", str(number)]
    ended = subprocess.run(command, env={"FA_HOME": os.getcwd()} | os.environ, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    words = ended.stdout if number is not None else Path(to).read_bytes() if os.path.exists(to) else b""
    sha256 = hashlib.sha256(words).hexdigest() if ended.returncode == 0 and words else ""
    return sha256, ended.stdout.decode(errors="replace")[:400].rstrip("\n")


def compare_words(gate):
    """tests/emu/conform, tests/emu/ptx and, on sm_90, tests/emu/hopper: word for word the same on both. Returns the
    program that runs them where it is missing."""
    subjects = gate.subjects
    emu_case = os.environ.get("EMU_CASE") or os.path.join(os.path.dirname(subjects.options.bench), "emu_case")
    if not os.access(emu_case, os.X_OK):
        emu_case = "build/tests/emu/emu_case"
    there = os.access(emu_case, os.X_OK)
    if not (subjects.gpu and there):
        why = f"no {emu_case}: make test-binaries" if subjects.gpu else "no GPU"
        subjects.notes.append(f"NOT-RUN: conformance ({why})")
        return emu_case if subjects.gpu else None
    listed = conformance_list(subjects.arch)
    words = [[gate.pool.submit(words_of, emu_case, f"{gate.records}/{name}.{device}", file, number, device)
              for device in ("emu", "cuda")] for name, file, number in listed]
    made = []
    for (name, _, _), sides in zip(listed, words):
        (emu, emu_text), (cuda, cuda_text) = (side.result() for side in sides)
        made.append({"kernel": "emulator", "tool": "conform", "args": name,
                     "verdict": "passed" if emu and emu == cuda else "failed", "code": 0, "seconds": None,
                     "text": f"emulator: {emu_text}; GPU: {cuda_text}", "words_sha256": {"emu": emu, "cuda": cuda}})
    write_json(f"{subjects.options.out}/conform.json", {
        "what": "conform", "gpu": subjects.device_name,
        **{verdict: sum(case["verdict"] == verdict for case in made) for verdict in ("passed", "failed")},
        "cases": [{"name": case["args"], "verdict": case["verdict"], "words_sha256": case["words_sha256"]}
                  for case in made]})
    gate.more += made
    return None


def speed_case(record, row, code):
    """A record of --vs as a case: the ratio holds to within 3 %, and the time is not below its static bound (a wrong
    bound or a wrong time)."""
    ratio, least = (record.get("vs") or {}).get("ratio"), row["ratio"]
    percent = (record.get("bound") or {}).get("percent_of_bound") or 0
    text = f"ratio {json.dumps(ratio)}, baseline {least}"
    if percent > 100:
        text += f"; the time is below its bound ({percent} %)"
    passed = code == 0 and (ratio or 0) >= 0.97 * least and percent <= 100
    return {"kernel": row["kernel"], "tool": "speed", "args": f"--vs {row['vs']} {row['args']}", "code": code,
            "seconds": seconds_of(record), "text": text, "verdict": "passed" if passed else "failed"}


def compare_speed(gate):
    """Each row of the baseline is a ratio by --vs."""
    subjects, out = gate.subjects, gate.options.out
    folder = re.sub("[^A-Za-z0-9]+", "_", subjects.device_name.removeprefix("NVIDIA ")).strip("_").lower()
    baseline = f"evidence/{folder}/gate_baseline.json" # as gpu_folder of scripts/lib/gpu.sh
    if subjects.typed or not subjects.gpu or not os.path.exists(baseline):
        why = "the baseline is of FP16" if subjects.typed else "no baseline for this device"
        subjects.notes.append(f"NOT-RUN: speed ({why})")
        return
    for row in json.loads(read(baseline)):
        if not subjects.only or row["kernel"] in subjects.only:
            command = [subjects.options.bench, "--kernel", row["kernel"], "--vs", row["vs"], *row["args"].split(),
                       "--quiet", "--json", f"{out}/speed.json"]
            with open(f"{out}/speed.txt", "wb") as text:
                code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.STDOUT,
                                      check=False).returncode
            gate.more.append(speed_case(parsed(read(f"{out}/speed.json")), row, code))


def compare(gate):
    """Conformance and speed, where they belong to what was asked for. Returns what --require-gpu misses."""
    subjects, options, missing = gate.subjects, gate.options, None
    if options.sanitize or options.race:
        return None
    if not subjects.only and not subjects.typed:
        missing = compare_words(gate)
    if not options.conform:
        compare_speed(gate)
    return missing if options.require_gpu else None
