#!/usr/bin/env python3
"""Validates the JSON values in files, or - for stdin, against the schema beside this file that each one names; prints
what is wrong."""
import functools
import json
import pathlib
import sys

import jsonschema



def values(text):
    """One or many, on lines of their own or not."""
    decoder, at = json.JSONDecoder(), 0
    text = text.strip()
    if not text:
        raise ValueError("no JSON")
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        at = len(text) - len(text[end:].lstrip())
        yield value


@functools.cache
def validator(schema):
    rules = json.loads((pathlib.Path(__file__).parent / f"{schema}.schema.json").read_text())
    return jsonschema.Draft202012Validator(rules)


def errors(name):
    for record in values(sys.stdin.read() if name == "-" else pathlib.Path(name).read_text()):
        schema = str(record.get("schema", "")).split("/")[0]
        if schema not in ("fa_bench.result", "fa_bench.score", "fa_bench.rbk_report"):
            sys.exit(f"{name}: no schema named '{schema}'")
        yield from validator(schema).iter_errors(record)


bad = 0
for name in sys.argv[1:]:
    for error in errors(name):
        bad += 1
        print(f"{name}: {'/'.join(map(str, error.path))}: {error.message}", file=sys.stderr)
sys.exit(1 if bad or len(sys.argv) < 2 else 0)
