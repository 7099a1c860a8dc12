"""ShinkaEvolve's evaluator of a kernel: scripts/evaluate.sh. Run the search from the repository root: Shinka copies
this file to its results. FA_EVALUATE holds more options of evaluate.sh, e.g. "--incumbent mma --problems mine.txt".
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess


def main(program_path, results_dir):
    command = ["scripts/evaluate.sh", program_path, *shlex.split(os.environ.get("FA_EVALUATE", ""))]
    score = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    emulator = score["stages"]["emulator"]
    refused = emulator["status"] == "not_run" and emulator["runs"] > 0  # the emulator does not take this candidate
    if score["combined_score"] is None and not refused:  # no GPU, say: a search without scores makes no sense
        raise RuntimeError(score["text_feedback"])
    right = score["correct"] is not False and not refused
    correct = {"correct": right, "error": None if right else score["text_feedback"]}
    metrics = {key: score[key] or 0 for key in ("combined_score", "text_feedback", "private")}
    metrics["public"] = {"status": score["status"], "ratio": score["public"]["ratio"], "improved": score["improved"]}
    results = pathlib.Path(results_dir)
    results.mkdir(parents=True, exist_ok=True)
    (results / "correct.json").write_text(json.dumps(correct))
    (results / "metrics.json").write_text(json.dumps(metrics))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    main(**vars(parser.parse_args()))
