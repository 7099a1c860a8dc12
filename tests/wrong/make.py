#!/usr/bin/env python3
"""Writes the wrong kernels of wrong.tsv: make.py FOLDER [NAME...]. A row is a name, the kernel it is made from (an
example, or a file of tests/wrong), the one text that it replaces, with what (\\n is a line end), and gpu where only a
GPU is large enough to show the fault, bf16 where tensors of that type do. Says NAME, FILE, base and where, a line
each."""
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rows = [line.split("\t") for line in (here / "wrong.tsv").read_text(encoding="utf-8").splitlines()]
for name in sys.argv[2:]:
    assert name in (row[0] for row in rows), f"no wrong kernel {name}"
for row in rows:
    name, base, old, new = (part.replace("\\n", "\n") for part in row[:4])
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    text = (root / (base if "/" in base else f"examples/{base}")).with_suffix(".cu").read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{name}: found {text.count(old)} times: {old!r}"
    text = text.replace(old, new).replace('"../kernels/', f'"{root}/kernels/')
    (folder / f"{name}.cu").write_text(text, encoding="utf-8")
    print(name, folder / f"{name}.cu", base, *(row[4:] or ["any"]))
