#!/usr/bin/env python3
"""Mutants of the judge: one token changed in a pure module of the driver; a unit test that covers it must fail.

Each mutant is compiled, linked into the unit tests of its file and run, several at once in folders of their own. One
with the machine code of the original is equivalent. Others that change nothing that can be seen stand in
tests/mutate.tsv with the reason: file, function, line as it stands, changed line (or * for every change of it), reason,
by tabs. A mutant is killed when a test fails, crashes or takes ten times as long as it should.
Needs what `make all test-binaries` builds. Exit: 0 enough are killed, 1 too few, or an entry of mutate.tsv is stale,
2 usage, 4 no build.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

# What is mutated, and the unit tests that cover it, the quickest first. Left out: check/kept.c, the mistakes that a
# diagnosis tries (tests/wrong/named.sh) and the static bound, which judge nothing.
COVERED = {
    "check/check.c": ["check"], "check/choose_rows.c": ["reference"],
    "check/device_reference.c": ["check", "gradients"], "check/diagnose.c": ["hypotheses", "diagnose", "rules"],
    "check/draw.c": ["diagnose", "check", "features"], "check/errors.c": ["diagnose", "rules"],
    "check/judge.c": ["check", "gradients"], "check/repeats.c": ["check"],
    "check/lse.c": ["diagnose", "lse"], "check/reference.c": ["rules", "reference", "features"],
    "check/rules.c": ["diagnose", "rules"], "timing/calibrate.c": ["measure_golden", "measure"],
    "timing/invariance.c": ["invariance"], "timing/measure.c": ["measure_golden", "measure"],
    "timing/paired.c": ["measure_golden", "paired"], "timing/roofline.c": ["measure_golden", "roofline"],
    "timing/stats.c": ["stats", "measure_golden", "measure"], "input/layout.c": ["diagnose", "layout"],
    "input/problem.c": ["measure_golden", "problem", "features"], "input/spec.c": ["spec", "problem"],
    "input/element.c": ["diagnose", "tensors"], "input/splits.c": ["spec", "problem"],
    "input/tensors.c": ["diagnose", "tensors", "features"],
}
NEEDED = 0.95 # of all; a sample may miss it by two standard deviations
TIMES_AS_LONG = 10
# As make test-asan: a read past an array is a failure. The cheapest alone where the tests compute for seconds.
TRAPS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FEW_TRAPS = ["-fsanitize=bounds", "-fno-sanitize-recover=all"]


def traps(path):
    return FEW_TRAPS if path in ("check/choose_rows.c", "check/reference.c") else TRAPS


# The grammar of a change. Binary operators have blanks on both sides (clang-format), which tells them from unary ones.
OPERATORS = {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="],
             "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"], "&": ["|"],
             "|": ["&"], "^": ["&"], "<<": [">>"], ">>": ["<<"], "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="],
             "|=": ["&="], "&=": ["|="], "^=": ["|="]}
WORDS = {"true": ["false"], "false": ["true"], "fmax": ["fmin"], "fmin": ["fmax"], "ceil": ["floor"],
         "floor": ["ceil"], "continue": ["break"]}
COMMUTATIVE = {"fmax", "fmin", "memcmp", "strcmp", "fmaxf", "fminf", "largest", "least", "most", "fewest"}
TOKEN = re.compile(r"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[fFuUlL]*\b)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<step>\+\+|--)
    |(?P<operator>(?<=\ )(?:<<=|>>=|[-+*/%&|^<>=!]=|<<|>>|&&|\|\||[-+*/%&|^<>])(?=[ \n]))
    |(?P<not>!(?=[\w(]))
    |(?P<brace>[{}])
    |(?P<other>->|\S)""", re.VERBOSE | re.DOTALL)
PARAMETER = re.compile(r"[(,] ?(?:const )?\w+ \w+\[$") # a length there says nothing to the compiler
UNTOUCHED = re.compile(r"^\s*(FA_ASSERT|static_assert|_Static_assert|#(?!define)|typedef|fa_bug)|\bfa_alloc\(|sizeof")
DECLARES = re.compile(r"^\s*(?:static |const |unsigned |struct )*\w+ \**\w+(?:\[[^]]*\])*(?: =|;|,)")
STATEMENT = re.compile(r"^\s+(?!\s|return\b|free\(|fa_\w*free\(|typedef|case\b|default\b)[^{}]*;$")
SIMPLE = r"[\w.>\-\[\]&]+"
TERM = r"[\w.>\-\[\]]+(?: [-/+] [\w.]+)*"
LARGER = re.compile(rf"({TERM}) [<>]=? ({TERM}) \? (?:\1 : \2|\2 : \1)\b") # of equal numbers either may be picked
CALL = re.compile(rf"\b(\w+)\(((?:{SIMPLE}, )*?)({SIMPLE}), ({SIMPLE})(?=[,)])")


class Mutant:
    def __init__(self, path, function, text, start, end, new):
        self.path, self.function, self.start, self.end, self.new = path, function, start, end, new
        self.line = text.count("\n", 0, start) + 1
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        self.old_line = " ".join(text[first:last].split())
        self.new_line = " ".join((text[first:start] + new + text[end:last]).split())

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]

    def entry(self):
        return (self.path, self.function, self.old_line, self.new_line)


def other_numbers(word):
    """Values beside a constant; its suffix stays."""
    digits = re.match(r"0[xX][0-9a-fA-F]+|[\d.]+(?:[eE][-+]?\d+)?", word).group()
    suffix = word[len(digits):]
    if "." in digits or ("e" in digits.lower() and not digits.lower().startswith("0x")):
        value = float(digits)
        return [f"{value * 2 if value else 1.0!r}{suffix}", f"{value / 2 if value else -1.0!r}{suffix}"]
    value = int(digits, 0)
    return [f"{value + 1}{suffix}"] + ([f"{value - 1}{suffix}"] if value > 0 else [])


def functions_of(text):
    """For each offset where a function begins, its name."""
    found = [(0, "file")]
    begin = r"^(?!typedef|struct|enum|static const|#)[A-Za-z][^;={}]*?(\w+)\([^;{}]*\)\s*\n?\{"
    for match in re.finditer(begin, text, re.M):
        end = text.find("\n}", match.end())
        one_line = "\n" not in text[match.end():text.find("}", match.end())]
        found += [(match.start(), match.group(1)), (match.end() if one_line and end < 0 else end, "file")]
    return sorted(found)


def at_tokens(path, text, owner):
    picks = {match.end(1) + 1 for match in LARGER.finditer(text)}
    for match in TOKEN.finditer(text):
        kind, word, start = match.lastgroup, match.group(), match.start()
        line = text[text.rfind("\n", 0, start) + 1:text.find("\n", start)]
        if UNTOUCHED.search(line) or kind in ("skip", "other", "brace"):
            continue
        before = text[:start].rsplit("\n", 1)[1]
        if kind == "number" and not (text[start - 1] == "[" and (DECLARES.match(line) or PARAMETER.search(before))):
            news = other_numbers(word)
        elif kind == "not":
            news = [""]
        elif kind == "step":
            news = ["--" if word == "++" else "++"]
        else:
            news = (OPERATORS if kind == "operator" else WORDS).get(word, [])
        for new in news:
            if start not in picks or new[0] != word[0]:
                yield Mutant(path, owner(start), text, start, match.end(), new)


def at_lines(path, text, owner):
    """Statements dropped, neighbouring arguments swapped."""
    offset, before = 0, ";"
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\n")
        if not UNTOUCHED.search(body) and not body.startswith("#"):
            if STATEMENT.match(body) and not DECLARES.match(body) and (before[-1:] in ";{}):" or before == "else"):
                start = offset + len(body) - len(body.lstrip())
                yield Mutant(path, owner(offset), text, start, offset + len(body), ";")
            for call in CALL.finditer(body):
                a, b = call.group(3), call.group(4)
                if call.group(1) not in COMMUTATIVE and a != b and owner(offset) != "file":
                    yield Mutant(path, owner(offset), text, offset + call.start(3), offset + call.end(4), f"{b}, {a}")
        before = body.strip() or before
        offset += len(line)


def mutants_of(path):
    text = pathlib.Path("src", path).read_text(encoding="utf-8")
    blank = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", "_", m.group()), text, flags=re.S)
    begins = functions_of(blank)

    def owner(offset):
        return next(name for start, name in reversed(begins) if start <= offset)
    lines = [m for m in at_lines(path, text, owner) if not re.search(r"^\s*(/?\*)", text.splitlines()[m.line - 1])]
    return list(at_tokens(path, text, owner)) + lines


class Build:
    """The commands of make, with one object replaced."""

    def __init__(self, work):
        self.work, self.build = work, os.environ.get("BUILD", "build")
        self.tree = f"{work}/tree"  # where the tests run: what a mutant writes beside the sources goes with it
        os.makedirs(self.tree)
        for name in os.listdir("."):
            os.symlink(os.path.abspath(name), f"{self.tree}/{name}")
        tests = sorted({name for names in COVERED.values() for name in names})
        sources = [f"src/{path}" for path in COVERED] + [f"tests/unit/test_{name}.c" for name in tests]
        goals = [f"{self.build}/src/{path[:-2]}.o" for path in COVERED]
        goals += [f"{self.build}/tests/unit/test_{name}" for name in tests]
        words = ["make", "-n", "V=1"] + [word for source in sources for word in ("-W", source)] + goals
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        self.commands = {}
        for line in said.splitlines():
            command = shlex.split(line) if " -MP " in line else []
            if "-o" in command:
                self.commands[command[command.index("-o") + 1]] = command
        self.objects, self.seconds = {}, {}
        for name in tests: # compiled once, linked often
            source = f"tests/unit/test_{name}.c"
            command = self.commands[f"{self.build}/tests/unit/test_{name}"]
            compiled = f"{work}/test_{name}.o"
            flags = [word for word in command if re.match("-(?!l|Wl|M|o)", word)]
            assert run([command[0]] + flags + ["-g0", "-c", "-o", compiled, source]) == 0, source
            self.objects[name] = compiled

    def compile(self, path, source, to):
        """What is not set is a pattern, so that reading it shows."""
        command = list(self.commands[f"{self.build}/src/{path[:-2]}.o"])
        command[command.index("-o") + 1] = to
        command = [word for word in command if word not in ("-MMD", "-MP", "-g")]
        command[-1] = source
        folder = f"src/{path}".rsplit("/", 1)[0]
        errors = ["-Werror=incompatible-pointer-types", "-Werror=int-conversion"]
        unset = ["-ftrivial-auto-var-init=pattern"]
        return run(command + errors + unset + ["-I", folder] + traps(path)) == 0

    def link(self, name, path, replacement, to):
        command = list(self.commands[f"{self.build}/tests/unit/test_{name}"])
        command[command.index("-o") + 1] = to
        swap = {f"tests/unit/test_{name}.c": self.objects[name], f"{self.build}/src/{path[:-2]}.o": replacement}
        command = [swap.get(word, word) for word in command if word not in ("-MMD", "-MP", "-g")]
        return run(command + ["-Wl,-S"] + traps(path)) == 0

    def test(self, binary, folder, limit):
        env = dict(os.environ, TMPDIR=folder, OMP_WAIT_POLICY="passive", FA_HOME=os.getcwd(),
                   ASAN_OPTIONS="detect_leaks=0:hard_rss_limit_mb=8192:allocator_may_return_null=1")
        command = ["prlimit", "--core=0", "--fsize=100000000", binary]
        try:
            return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False,
                                  stderr=subprocess.DEVNULL, timeout=limit, cwd=self.tree).returncode
        except subprocess.TimeoutExpired:
            return "timeout"

    def originals(self, path):
        """The object of the file as it stands, and how long its tests take with it."""
        folder = f"{self.work}/{path.replace('/', '_')}.original"
        os.makedirs(folder)
        assert self.compile(path, f"src/{path}", f"{folder}/0.o"), path
        for name in COVERED[path]:
            assert self.link(name, path, f"{folder}/0.o", f"{folder}/{name}"), f"test_{name} does not link"
            begin = time.monotonic()
            code = self.test(f"{folder}/{name}", folder, 600)
            assert code == 0, f"test_{name} ends with {code} on the sources as they are"
            self.seconds[path, name] = time.monotonic() - begin
        return pathlib.Path(folder, "0.o").read_bytes()


def run(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode


def verdict_of(build, originals, mutant, number):
    """stillborn, same code, or killed by a test, or survived."""
    with tempfile.TemporaryDirectory(dir=build.work, prefix=f"m{number}.") as folder:
        text = pathlib.Path("src", mutant.path).read_text(encoding="utf-8")
        source, made = f"{folder}/{pathlib.Path(mutant.path).name}", f"{folder}/0.o"
        pathlib.Path(source).write_text(f'#line 1 "src/{mutant.path}"\n' + mutant.apply(text), encoding="utf-8")
        if not build.compile(mutant.path, source, made):
            return "stillborn"
        if pathlib.Path(made).read_bytes() == originals[mutant.path]:
            return "same code"
        for name in COVERED[mutant.path]:
            if not build.link(name, mutant.path, made, f"{folder}/{name}"):
                return "stillborn"
            if build.test(f"{folder}/{name}", folder, 5 + TIMES_AS_LONG * build.seconds[mutant.path, name]) != 0:
                return f"killed by test_{name}"
        return "survived"


def equivalents():
    """Entry without the reason: the reason."""
    path = pathlib.Path("tests/mutate.tsv")
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    for line in lines:
        assert len(line) == 5 and all(line), f"tests/mutate.tsv: five fields, please: {line}"
    return {tuple(line[:4]): line[4] for line in lines}


def stale(known):
    """Entries of which the file has no such mutant."""
    possible = {path: {m.entry() for m in mutants_of(path)} for path in {entry[0] for entry in known} & set(COVERED)}
    return [entry for entry in known if not any(
        entry[:3] == made[:3] and entry[3] in ("*", made[3]) for made in possible.get(entry[0], ()))]


def judge(mutants, jobs, wanted):
    """Pairs of a mutant and what became of it, until `wanted` of them count."""
    known = equivalents()
    results, counted = [], 0
    with tempfile.TemporaryDirectory(prefix="fa_mutate.") as work, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        build = Build(work)
        paths = sorted({m.path for m in mutants})
        originals = dict(zip(paths, pool.map(build.originals, paths)))
        waiting, at = {}, 0
        while (at < len(mutants) and counted + len(waiting) < wanted) or waiting:
            while at < len(mutants) and len(waiting) < jobs and counted + len(waiting) < wanted:
                waiting[pool.submit(verdict_of, build, originals, mutants[at], at)] = mutants[at]
                at += 1
            done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                mutant, verdict = waiting.pop(future), future.result()
                why = known.get(mutant.entry()) or known.get(mutant.entry()[:3] + ("*",))
                verdict = "equivalent" if verdict == "survived" and why else verdict
                counted += verdict == "survived" or verdict.startswith("killed")
                results.append((mutant, verdict))
                if verdict == "survived":
                    print(f"survived: src/{mutant.path}:{mutant.line} {mutant.function}\n  - {mutant.old_line}\n"
                          f"  + {mutant.new_line}", flush=True)
    return results


def summary(results, seed, outdated):
    def count(what, path=None):
        return sum(v.startswith(what) for m, v in results if path in (None, m.path))
    killed, survived = count("killed"), count("survived")
    return {"what": "judge_mutants", "seed": seed, "killed": killed, "survived": survived,
            "equivalent": count("equivalent"), "same_code": count("same"), "stillborn": count("stillborn"),
            "stale": [list(entry) for entry in outdated],
            "files": [{"file": path, "killed": count("killed", path), "survived": count("survived", path)}
                      for path in sorted({m.path for m, _ in results})],
            "survivors": [{"file": m.path, "function": m.function, "line": m.old_line, "changed": m.new_line}
                          for m, v in results if v == "survived"]}


def usage_error(message):
    print(f"mutate.py: {message} (see --help)", file=sys.stderr)
    sys.exit(2)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = usage_error # one line
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    parser.add_argument("--count", type=int, default=60, help="mutants to judge, equivalent ones aside (default: 60)")
    parser.add_argument("--all", action="store_true", help="every mutant of the files")
    parser.add_argument("--only", action="append", help="this file alone, such as check/rules.c (repeatable)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at once (default: the cores)")
    parser.add_argument("--json", help="write the summary to this file")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    args = parser.parse_args()
    for path in args.only or []:
        if path not in COVERED:
            usage_error(f"{path} is not one of {', '.join(COVERED)}")
    if args.count < 1 or args.jobs < 1:
        usage_error("--count and --jobs take a whole number from 1")
    return args


def main():
    args = arguments()
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    mutants = [m for path in args.only or COVERED for m in mutants_of(path)]
    # By a hash of what is changed: an edit of one line leaves the rest of the draw as it is.
    mutants.sort(key=lambda m: hashlib.sha256(f"{args.seed} {m.entry()}".encode()).digest())
    if args.list:
        for m in mutants:
            print(f"{m.path}:{m.line}\t{m.function}\t{m.old_line}\t{m.new_line}")
        return 0
    if not os.path.exists(os.path.join(os.environ.get("BUILD", "build"), "tests/unit/test_rules")):
        print("mutate.py: NOT-RUN: no unit tests: make test-binaries", file=sys.stderr)
        return 4
    outdated = stale(equivalents())
    for entry in outdated:
        print("an entry of tests/mutate.tsv without a mutant: " + " | ".join(entry))
    results = judge(mutants, args.jobs, len(mutants) if args.all else args.count)
    made = summary(results, args.seed, outdated)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    total = made["killed"] + made["survived"]
    print(f"seed {args.seed}: {made['killed']} of {total} mutants killed by unit tests; besides "
          f"{made['equivalent']} equivalent with a reason, {made['same_code']} with the same machine code, "
          f"{made['stillborn']} that do not compile")
    enough = NEEDED * total - 2 * (total * NEEDED * (1 - NEEDED)) ** 0.5
    return 0 if total and made["killed"] >= enough and not outdated else 1


if __name__ == "__main__":
    sys.exit(main())
