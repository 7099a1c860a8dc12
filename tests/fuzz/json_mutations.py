#!/usr/bin/env python3
"""Damaged JSON for the scripts that read it: each must end with one of its own exit codes and, where it refuses, in
words.

usage: tests/fuzz/json_mutations.py [--seconds N | --runs N] [--seed N]
A stand-in for fa_bench hands out mutated records (FA_MUTANT) to evo_test_one.sh and evo_sweep.sh, and evo_sweep.sh
finds mutated leaderboards. A finding is kept in build/fuzz/json-finding-*, and the exit code is then 1."""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
BENCH = os.path.realpath(os.environ.get('FA_BENCH', os.path.join(ROOT, 'fa_bench')))
# What a script says when it did not see the damage coming.
STUMBLES = re.compile(r'jq: (error|parse error)|parse error|unbound variable|syntax error|command not found|'
                      r'integer expression|: line \d+:|Broken pipe|Traceback')
STAND_IN = '''#!/usr/bin/env bash
json=- ; a=("$@")
for i in "${!a[@]}"; do [[ ${a[i]} == --json ]] && json=${a[i + 1]}; done
for x in "$@"; do
    [[ $x == --list-kernels ]] && exec cat "$FA_REGISTRY"
    [[ $x == --version ]] && exec echo "fa_bench 0"
done
if [[ $json == - ]]; then cat "$FA_MUTANT"; else cp "$FA_MUTANT" "$json"; fi
exit "$FA_MUTANT_CODE"
'''


def values_of(node, path=()):
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from values_of(child, path + (key,))


def mutate_tree(record, rng):
    record = json.loads(json.dumps(record))
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(values_of(record)))
        value = rng.choice([None, [], {}, '', 'x\n\u0000\u2028', -1, 0, 1e308, True, [1, 'a', None], {'m': {}},
                            '$(false)`|;'])
        if not path:
            return json.dumps(value).encode()
        parent = record
        for key in path[:-1]:
            parent = parent[key]
        if rng.random() < 0.4 and isinstance(parent, dict):
            del parent[path[-1]]
        else:
            parent[path[-1]] = value
    return json.dumps(record).encode()


def mutate_bytes(text, rng):
    data = bytearray(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at:at + rng.randint(1, 40)]
        elif kind == 3:
            data[at:at] = rng.choice([b'\x00', b'\xff\xfe', b'NaN', b'{', b'"', b'\n', b'1e999', b'[' * 600])
        elif data:
            data[at:at] = data[:rng.randint(1, 60)]
    return bytes(data)


def mutant(record, rng):
    return mutate_tree(record, rng) if rng.random() < 0.6 else mutate_bytes(json.dumps(record).encode(), rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seconds', type=float, default=5)
    parser.add_argument('--runs', type=int, default=0)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    work = tempfile.mkdtemp()
    stand_in = os.path.join(work, 'fa_bench')
    with open(stand_in, 'w', encoding='utf-8') as out:
        out.write(STAND_IN)
    os.chmod(stand_in, 0o755)
    paths = {name: os.path.join(work, name) for name in ('mutant', 'registry', 'record')}
    with open(paths['registry'], 'wb') as out:
        out.write(subprocess.run([BENCH, '--list-kernels', '--json', '-'], stdout=subprocess.PIPE, check=True).stdout)
    made = subprocess.run([BENCH, '--kernel', 'light', '--compile-only', '--arch', 'sm_89', '--quiet', '--json', '-'],
                          stdout=subprocess.PIPE, check=False)
    record = json.loads(made.stdout)
    line = {'key': 'k' * 64, 'group': 'g', 'gpu': 'CPU emulator', 'kernel': 'light', 'knobs': 'm=32', 'class': 'fp32',
            'problem': record['problem'], 'status': 'pass', 'reason': None, 'code': 0, 'p50_us': 3.5, 'p90_us': 4.0,
            'loosened': False, 'source_sha256': 's', 'time': 't'}
    board = [{'group': 'g', 'leader': 'light', 'kernels': {'light': line}}]
    environment = dict(os.environ, FA_BENCH=stand_in, FA_MUTANT=paths['mutant'], FA_REGISTRY=paths['registry'])
    runs = findings = 0
    end = time.monotonic() + options.seconds
    while runs < options.runs if options.runs else time.monotonic() < end or runs < 4:
        target = rng.choice(['evo_test_one', 'evo_test_one', 'evo_test_one', 'sweep_record', 'sweep_log'])
        out_dir = os.path.join(work, 'board')
        shutil.rmtree(out_dir, ignore_errors=True)
        os.makedirs(out_dir)
        with open(paths['mutant'], 'wb') as out:
            out.write(json.dumps(record).encode() if target == 'sweep_log' else mutant(record, rng))
        if target == 'evo_test_one':
            command = ['scripts/evo_test_one.sh', '32', '8', '4', '--kernel', 'light', '--json', paths['record']]
        else:
            command = ['scripts/evo_sweep.sh', '--kernel', 'light', '--strategy', 'grid', '--budget', '1',
                       '--out', out_dir]
            if target == 'sweep_log':
                with open(os.path.join(out_dir, 'leaderboard.jsonl'), 'wb') as out:
                    out.write(b'\n'.join(mutant(line, rng) if rng.random() < 0.5 else json.dumps(line).encode()
                                         for _ in range(4)) + b'\n')
                with open(os.path.join(out_dir, 'leaderboard.json'), 'wb') as out:
                    out.write(mutant(board, rng))
        environment['FA_MUTANT_CODE'] = str(rng.choice([0, 0, 0, 1, 6]))
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60, check=False)
            code, text = done.returncode, done.stdout.decode(errors='replace')
        except subprocess.TimeoutExpired:
            code, text = 124, 'no end within 60 s'
        runs += 1
        stumble = STUMBLES.search(text)
        if code not in range(7) or stumble or (code not in (0, 1) and not text.strip()):
            findings += 1
            kept = os.path.join(ROOT, 'build', 'fuzz', f'json-finding-{findings}')
            shutil.rmtree(kept, ignore_errors=True)
            os.makedirs(kept)
            shutil.copy(paths['mutant'], kept)
            for name in os.listdir(out_dir):
                if os.path.isfile(os.path.join(out_dir, name)):
                    shutil.copy(os.path.join(out_dir, name), kept)
            print(f'{target}: exit {code}: {text.strip()[:400]}\n    kept in {kept}')
            if findings >= 5:
                break
    shutil.rmtree(work, ignore_errors=True)
    print(f'stat::number_of_executed_units: {runs}')
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
