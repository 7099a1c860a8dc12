#!/usr/bin/env python3
"""Writes the table of tests/README.md: the modules of src/, and the unit tests and fuzzers that call them, a row for
those of a room that have the same tests.

A test calls a module when it includes the module's header or names a function that the .c file defines. Where more than
five do, the table names the one of the module's own name, if there is one, and counts the others.
"""
import argparse
import os
import pathlib
import re
import sys

PAGE = pathlib.Path("tests/README.md")
MARK = "<!-- The rest is made by scripts/house/test_map.py. -->\n"
DEFINED = re.compile(r"^(?!static\b)[a-z][^;=(]*?\b(fa_\w+)\(", re.MULTILINE)


def words(path):
    """The identifiers of a file, and the headers that it includes, without its comments."""
    return set(re.findall(r'\w+|"[\w/]+\.h"', re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)))


def called_by(module, tests):
    functions = set(DEFINED.findall(module.read_text()))
    functions.add(f'"{module.relative_to("src").with_suffix(".h")}"')
    names = [path.stem for path, named in tests.items() if functions & named]
    own = [name for name in (f"test_{module.stem}", f"fuzz_{module.stem}") if name in names]
    others = sorted(set(names) - set(own), reverse=True) # unit tests before fuzzers
    return own + (others if len(names) <= 5 else [f"{len(others)} others" if own else f"{len(others)} tests"])


def table():
    paths = sorted([*pathlib.Path("tests/unit").glob("test_*.c"), *pathlib.Path("tests/fuzz").glob("*.c")])
    tests = {path: words(path) for path in paths}
    rows = {}
    for module in sorted(pathlib.Path("src").rglob("*.c")):
        if names := ", ".join(called_by(module, tests)):
            rows.setdefault((module.parent, names), []).append(module.stem)
    yield from ("", "A module that is not here is tested by those that call it, and by the suites above.", "")
    yield from ("| room | modules | unit tests and fuzzers |", "|---|---|---|")
    for (room, names), modules in sorted(rows.items(), key=lambda row: row[0][0]):
        yield f"| `{room}` | {', '.join(modules)} | {names} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the table is not current")
    check = parser.parse_args().check
    os.chdir(pathlib.Path(__file__).parents[2])
    head, mark, old = PAGE.read_text().partition(MARK)
    new = "\n".join(table()) + "\n"
    if check and old != new:
        changed = sorted(set(new.split("\n")) ^ set(old.split("\n")))
        sys.exit(f"{PAGE} is not current: run scripts/house/test_map.py\n" + "\n".join(changed))
    if not check:
        PAGE.write_text(head + (mark or MARK) + new)


main()
