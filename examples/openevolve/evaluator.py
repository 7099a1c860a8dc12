"""OpenEvolve's evaluator of a kernel: scripts/evaluate.sh. Its score is the fitness, its words go into the next prompt.

FA_EVALUATE holds more options of evaluate.sh, e.g. "--incumbent mma --problems mine.txt".
"""

import json
import os
import pathlib
import shlex
import subprocess

from openevolve.evaluation_result import EvaluationResult

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "evaluate.sh"


def evaluate(program_path):
    command = [SCRIPT, program_path, *shlex.split(os.environ.get("FA_EVALUATE", ""))]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr)
    score = json.loads(run.stdout)
    emulator = score["stages"]["emulator"]
    refused = emulator["status"] == "not_run" and emulator["runs"] > 0  # the emulator does not take this candidate
    if score["combined_score"] is None and not refused:  # no GPU, say: a search without scores makes no sense
        raise RuntimeError(score["text_feedback"])
    metrics = {"combined_score": float(score["combined_score"] or 0), "correct": float(bool(score["correct"]))}
    return EvaluationResult(metrics, {"status": score["status"], "feedback": score["text_feedback"]})
