#!/usr/bin/env python3
"""Validates the JSON values in files, or - for stdin, against the schema of tests/schemas that each one names; prints
what is wrong. A key of a record that its schema does not describe is wrong too: a new field needs both.

usage: tests/validate_record.py FILE...
Exit: 0, 1 with something wrong, 2 usage."""
import functools
import json
import pathlib
import sys

import jsonschema

SCHEMAS = pathlib.Path(__file__).parent / "schemas"


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


def closed(rules):
    """The schema without keys beside those that it describes."""
    rules = dict(rules)
    for part in {"properties", "$defs"} & rules.keys():
        rules[part] = {key: closed(value) for key, value in rules[part].items()}
    if "items" in rules:
        rules["items"] = closed(rules["items"])
    return rules | {"additionalProperties": False} if "properties" in rules else rules


@functools.cache
def validator(schema):
    return jsonschema.Draft202012Validator(closed(json.loads((SCHEMAS / f"{schema}.schema.json").read_text())))


def errors(name):
    for record in values(sys.stdin.read() if name == "-" else pathlib.Path(name).read_text()):
        schema = str(record.get("schema", "")).split("/")[0]
        if schema not in [path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir()]:
            sys.exit(f"{name}: no schema named '{schema}'")
        yield from validator(schema).iter_errors(record)


option = next((word for word in sys.argv[1:] if word.startswith("-") and word != "-"), "")
if option or len(sys.argv) < 2:
    print(__doc__, option)
    sys.exit(0 if option in ("-h", "--help") else 2)
bad = 0
for name in sys.argv[1:]:
    for error in errors(name):
        bad += 1
        print(f"{name}: {'/'.join(map(str, error.path))}: {error.message}", file=sys.stderr)
sys.exit(1 if bad else 0)
