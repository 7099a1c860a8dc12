#!/usr/bin/env python3
"""Validates JSON files, or - for stdin, against the schema beside this file that each one names; prints errors."""
import json
import pathlib
import sys

import jsonschema

bad = 0
for name in sys.argv[1:]:
    record = json.loads(sys.stdin.read() if name == "-" else pathlib.Path(name).read_text())
    schema = str(record.get("schema", "")).split("/")[0]
    if schema not in ("fa_bench.result", "fa_bench.score"):
        sys.exit(f"{name}: no schema named '{schema}'")
    rules = json.loads((pathlib.Path(__file__).parent / f"{schema}.schema.json").read_text())
    for error in jsonschema.Draft202012Validator(rules).iter_errors(record):
        bad += 1
        print(f"{name}: {'/'.join(map(str, error.path))}: {error.message}", file=sys.stderr)
sys.exit(1 if bad or len(sys.argv) < 2 else 0)
