#!/usr/bin/env python3
"""Runs the commands of a page as they are printed, and compares the output that the page shows.

usage: tests/run_docs.py [--slow | --list] PAGE.md [SCRATCH]

A block ```sh runs; ```sh slow runs with --slow; ```sh gpu and ```sh host do not run here (host: builds or installs).
A block ```text that follows at once is the output, both streams; "..." in it stands for anything.
Blocks of a page run one after another in one folder, SCRATCH (made where it is not given), that looks like the tree.
Exit: 0 all as printed, 1 a block failed or its output differs, 4 a block said not run (exit 4), after which no other
block of the page ran.
"""
import os
import re
import subprocess
import sys
import tempfile

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ("", "slow", "gpu", "host")


def blocks(page):
    """(kind, line number, commands, shown output or None) of each sh block."""
    found, lines, i, last = [], open(page, encoding="utf-8").read().split("\n"), 0, -9
    while i < len(lines):
        fence = re.match(r"( *)```(\w+) ?(\w*)$", lines[i])
        if not fence:
            if lines[i].strip():
                last = -9
            i += 1
            continue
        end = i + 1
        while lines[end].strip() != "```":
            end += 1
        body = [line[len(fence[1]):] for line in lines[i + 1:end]]
        if fence[2] == "sh":
            if fence[3] not in KINDS:
                sys.exit(f"{page}:{i + 1}: no kind of block '{fence[3]}'")
            found.append([fence[3], i + 1, "\n".join(body), None])
            last = len(found) - 1
        elif fence[2] == "text" and last >= 0:
            found[last][3] = "\n".join(body)
            last = -9
        i = end + 1
    return found


def as_shown(output, shown):
    """Trailing blanks do not count."""
    def neat(text):
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
    return re.fullmatch(re.escape(neat(shown)).replace(r"\.\.\.", ".*"), neat(output), re.DOTALL)


def main():
    arguments = sys.argv[1:]
    option = arguments.pop(0) if arguments and arguments[0].startswith("-") else ""
    if option in ("-h", "--help") or not arguments or option not in ("", "--slow", "--list"):
        print(__doc__, option)
        return 0 if option in ("-h", "--help") else 2
    wanted = "slow" if option == "--slow" else ""
    run = blocks(arguments[0])
    if option == "--list":
        for kind, line, _, _ in run:
            print(line, kind or "run")
        return 0
    if wanted and not any(kind == wanted for kind, *_ in run):
        return 0
    scratch = arguments[1] if len(arguments) > 1 else tempfile.mkdtemp()
    for name in os.listdir(TREE):
        if not name.startswith(".") and not os.path.lexists(os.path.join(scratch, name)):
            os.symlink(os.path.join(TREE, name), os.path.join(scratch, name))
    for kind, line, commands, shown in run:
        if kind != wanted:
            continue
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=scratch, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if done.returncode == 4:
            print(f"{arguments[0]}:{line}: not run: {done.stdout.strip().splitlines()[-1:]}")
            return 4
        if done.returncode != 0 or (shown is not None and not as_shown(done.stdout, shown)):
            print(f"{arguments[0]}:{line}: exit {done.returncode}; it printed:\n{done.stdout}")
            if shown is not None:
                print(f"the page shows:\n{shown}")
            return 1
    return 0


sys.exit(main())
