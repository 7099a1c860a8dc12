#!/usr/bin/env python3
"""Writes the wrong kernels of wrong.tsv: make.py FOLDER [NAME...]. A row is a name, the example it is made from, and
the one text that it replaces, with what; \\n is a line end. Says NAME and FILE, a line each."""
import pathlib
import sys

here = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for line in (here / "wrong.tsv").read_text(encoding="utf-8").splitlines():
    name, base, old, new = (part.replace("\\n", "\n") for part in line.split("\t"))
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    text = (here.parent.parent / "examples" / f"{base}.cu").read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{name}: found {text.count(old)} times: {old!r}"
    text = text.replace(old, new).replace('"../kernels/', f'"{here.parent.parent.resolve()}/kernels/')
    (folder / f"{name}.cu").write_text(text, encoding="utf-8")
    print(name, folder / f"{name}.cu", base)
