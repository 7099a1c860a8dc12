#!/usr/bin/env python3
"""Writes the wrong kernels of wrong.tsv. A row is a name; the kernel it is made from (an example, or a file of kernels/
or tests/wrong), with options of its own after it where the fault needs them; pairs of a
text that is replaced and what replaces it (\\n is a line end); and gpu where only a GPU is large enough to show the
fault, bf16 where tensors of that type do. A kernel and the headers that it includes are written as one file. Says NAME,
FILE, where, the base's file and its options, a line each. With --bases instead of names: the kernels as they were. With
--named before the names: those of named.tsv; says NAME, FILE, base, options and the words of its message.

usage: tests/wrong/make.py FOLDER [--bases | [--named] NAME...]"""
import pathlib
import re
import sys

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent


def flat(path, seen):
    """The text of a file with its own includes in their place, once each; fa_params.h is the bench's."""
    def included(line):
        header = (path.parent / line.group(1)).resolve()
        if not header.exists():
            header = root / "kernels" / line.group(1)
        if header.name == "fa_params.h":
            header = header.name
        if header in seen:
            return ""
        seen.add(header)
        return f'#include "{header}"\n' if header == "fa_params.h" else flat(header, seen)
    text = path.read_text(encoding="utf-8").replace("#pragma once\n", "")
    return re.sub(r'^#include "([^"]+)"\n', included, text, flags=re.M)


def text_of(base):
    name = base.split()[0]
    return flat((root / (name if "/" in name else f"examples/{name}")).with_suffix(".cu"), set())


def rows_of(table):
    lines = (here / table).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("# ")]


if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    print(__doc__, *sys.argv[1:])
    sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
named = sys.argv[2:3] == ["--named"]
names = sys.argv[2 + named:]
rows = rows_of("named.tsv" if named else "wrong.tsv")
if names == ["--bases"]:
    bases = dict.fromkeys(row[1] for row in rows)
    rows = [[re.sub(r"\W+", "_", base.split("/")[-1]), base] for base in bases]
    names = []
for name in names:
    assert name in (row[0] for row in rows), f"no wrong kernel {name}"
for name, base, *changes in rows:
    if names and name not in names:
        continue
    options, words = changes[:2] if named else ("", "")
    changes = changes[2 * named:]
    where = changes.pop() if len(changes) % 2 else "any"
    text = text_of(base)
    for old, new in zip(changes[::2], changes[1::2]):
        old, new = old.replace("\\n", "\n"), new.replace("\\n", "\n")
        assert text.count(old) == 1, f"{name}: found {text.count(old)} times: {old!r}"
        text = text.replace(old, new)
    (folder / f"{name}.cu").write_text(text, encoding="utf-8")
    if named:
        print(name, folder / f"{name}.cu", base, options, words, sep="\t")
    else:
        print(name, folder / f"{name}.cu", where, base)
