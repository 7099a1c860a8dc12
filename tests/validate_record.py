#!/usr/bin/env python3
"""Validates fa_bench records (files, or - for stdin) against tests/fa_bench.result.schema.json; prints what is wrong."""
import json
import pathlib
import sys

import jsonschema

schema = json.loads((pathlib.Path(__file__).parent / "fa_bench.result.schema.json").read_text())
validator = jsonschema.Draft202012Validator(schema)
bad = 0
for name in sys.argv[1:]:
    record = json.loads(sys.stdin.read() if name == "-" else pathlib.Path(name).read_text())
    for error in validator.iter_errors(record):
        bad += 1
        print(f"{name}: {'/'.join(map(str, error.path))}: {error.message}", file=sys.stderr)
sys.exit(1 if bad or len(sys.argv) < 2 else 0)
