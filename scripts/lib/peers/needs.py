"""Prints what the Python packages in a folder need and neither the folder nor a machine with PyTorch has.

usage: needs.py DIR X.Y    X.Y is the version of Python that will import them; no line: nothing is missing
"""

import re
import sys
from importlib.metadata import distributions

from pip._vendor.packaging.requirements import Requirement

# PyTorch for CUDA 13 comes with the first three; the next is for CUDA 12, in place of which ours has that for 13.
# FlashInfer imports the others for work that is not asked of it.
ELSEWHERE = {"torch", "cuda-bindings", "protobuf", "nvidia-cutlass-dsl-libs-cu12", "click", "cuda-python", "cuda-tile",
             "nccl-extensions", "nccl4py", "numpy", "requests", "tabulate"}


def plain(name):
    return re.sub("[-_.]+", "-", name).lower()


def main(folder, python):
    brought = {plain(d.metadata["Name"]): d for d in distributions(path=[folder])}
    environment = {"extra": "", "python_version": python, "python_full_version": python + ".0",
                   "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
    for name, distribution in sorted(brought.items()):
        for text in distribution.requires or []:
            need = Requirement(text)
            wanted = need.marker is None or need.marker.evaluate(environment)
            if wanted and plain(need.name) not in brought.keys() | ELSEWHERE:
                print(f"{name} needs {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
