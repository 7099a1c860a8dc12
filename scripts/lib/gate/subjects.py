"""What the gate is asked for, the device that is here, the kernels to test, and the list of their cases."""
import collections
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import features
import knobs
import problems
from problems import records_of

EMULATOR_TOOLS = ("race", "address", "undefined")  # what a result does not show, the emulator looks for
SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")
# knob: the value ("m=32") or the pair of values that the case is for; feature: what it draws ("varlen window")
Case = collections.namedtuple("Case", "kernel tool args knob feature", defaults=("", ""))
Said = collections.namedtuple("Said", "serves needs only bf16 lse page_rows")  # what a kernel says of itself
QUIET = ["--timing", "none", "--quiet"]


def die(code, text):
    print(f"ci_gate.sh: {text}", file=sys.stderr)
    sys.exit(code)


def options_of(words):
    """The options of scripts/ci_gate.sh, NAME=VALUE each; `tile`: what follows its "--"."""
    end = words.index("--")
    given = dict(word.split("=", 1) for word in words[:end])
    lists = {name: given.pop(name).splitlines() for name in ("kernel", "library")}
    return SimpleNamespace(tile=words[end + 1:], **lists, **{
        name: text if name in ("bench", "out", "resume", "source", "dtype") else int(text)
        for name, text in given.items()})


def read(path):
    return Path(path).read_text(encoding="utf-8", errors="replace") if os.path.exists(path) else ""


def compact(record):
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def write(path, text):
    Path(path).write_text(text, encoding="utf-8", errors="replace")


def write_json(path, made):
    write(path, json.dumps(made, ensure_ascii=False, indent=2) + "\n")


def seconds_of(record):
    stages = (record.get("provenance") or {}).get("stage_s")
    return sum(stages.values()) if stages else None


class Subjects:
    """The kernels that are tested, and the device they are tested on."""

    def __init__(self, options):
        self.options = options
        self.typed = "" if options.dtype == "fp16" else f"--dtype {options.dtype} "  # before the options of each case
        self.start = self.typed + ("--race --schedule random --seeds 1 " if options.race else "")
        rows = records_of([options.bench, "--list-kernels"])[0]
        self.rows = {row["name"]: row for row in rows}
        self.choose_kernels()
        self.choose_device()
        self.choose_served()
        self.others = {}  # of a case whose tile may be infeasible: the one to be tried instead
        self.said, self.left_out = {}, []  # (case, reason) of problems that a kernel's needs exclude

    def choose_kernels(self):
        options = self.options
        for name in options.kernel:
            if name not in self.rows:
                die(2, f"no kernel '{name}' (fa_bench --list-kernels)")
        # Without names every kernel of the registry is tested, and the emulator's own conformance with them.
        self.only = options.kernel + [f"library:{file}" for file in options.library]
        if options.source:
            self.only = [os.path.basename(options.source).removesuffix(".cu")]
        self.kernels = self.only or [name for name, row in self.rows.items() if row["variant_of"] is None]
        self.own = (records_of([*self.command(""), "--list-kernels"]) or [[{}]])[0][0] if options.source else {}
        if options.source:
            self.own["op"] = self.own_operator()
        if options.conform:
            self.kernels = []
        if self.typed:
            self.kernels = [name for name in self.kernels if self.serves_type(name)]

    def own_operator(self):
        """Of a file that knows the gradients' feature bit: backward where it compiles for that alone."""
        if "FA_FEATURE_BACKWARD" not in Path(self.options.source).read_text(encoding="utf-8", errors="replace"):
            return None
        ends = [(records_of([*self.command(""), *words, "--compile-only", "--quiet"]) or [{}])[0].get("status")
                for words in ([], ["--op", "backward"])]
        return "backward" if ends[0] != "pass" and ends[1] == "pass" else None

    def is_backward(self, kernel):
        return (self.own or self.row(kernel)).get("op") == "backward"

    def serves_type(self, name):
        """False for a kernel that does not compile for the element type; one that was asked for by name is NOT-RUN."""
        command = [*self.command(name), *self.typed.split(), "--compile-only", "--arch", "sm_90a", "--quiet"]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if ended.returncode in (2, 3) and self.only:
            die(4, f"NOT-RUN: {ended.stderr.rstrip()}")
        return ended.returncode not in (2, 3)

    def choose_device(self):
        """The GPU; the emulator where there is none or the race detector is asked for. And how much is drawn there."""
        options, probe = self.options, self.probe()
        device = probe.get("device") or {} if probe.get("status") != "not_run" else {}
        self.device_name = device.get("name") or ""
        self.arch = device.get("arch")
        self.target = (probe.get("ptxas") or {}).get("arch") or self.arch  # sm_90a of an sm_90
        self.gpu = bool(self.device_name) and not options.race
        self.device = "cuda" if self.gpu else "emu"
        self.mode = "sanitize" if options.sanitize else "race" if options.race else "plain"
        self.draws, self.seed = options.draws, options.seed
        if self.draws < 0:
            self.draws = {"plain": 60 if self.gpu else 12, "race": 6, "sanitize": 4}[self.mode]
        if self.seed < 0:
            self.seed = int(time.time()) if self.mode == "plain" else 1
        # What did not run.
        self.notes = [] if self.gpu or options.race else ["NOT-RUN on a GPU: none here; emulator matrix only"]

    def probe(self, *more):
        """The record of a small run on the GPU."""
        words = "--device cuda --batch 1 --heads 1 --seq 16 --dim 64 --seeds 1 --check cpu".split()
        return (records_of([self.options.bench, *words, *QUIET, *more]) or [{}])[0]

    def choose_served(self):
        """The dims and masks that a file of one's own serves, where these are not all. Problems are made for them; else
        only those would run that happen to fit. Asks the compiler: a kernel refuses by a static_assert, its shared
        memory or its registers."""
        self.served, fp8 = {}, self.options.dtype == "e4m3"
        few = [16, 48, 112, 256] if fp8 else [16, 40, 104, 256]
        if not self.options.source or all(self.compiled(few, mask) == few for mask in ("", "--causal")):
            return
        dims = [dim for dim in (16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 224, 256)
                if not fp8 or dim % 16 == 0]
        full = self.compiled(dims, "")
        causal = [] if full else self.compiled(dims, "--causal")
        if full or causal:
            mask = "causal" if causal else "both" if self.compiled(full[:1], "--causal") else "full"
            self.served = {"dims": full or causal, "mask": mask}

    def compiled(self, dims, mask):
        """Which of these dims are not infeasible for the file."""
        records = records_of([*self.command(""), *self.typed.split(), "--compile-only", "--quiet"],
                             [f"--dim {dim} {mask}" for dim in dims])
        return [dim for dim, record in zip(dims, records) if record["status"] != "infeasible"]

    # What a kernel says that it serves and needs.

    def says(self, kernel):
        if kernel not in self.said:
            self.said[kernel] = self.ask(kernel)
        return self.said[kernel]

    def ask(self, kernel):
        """By the records of small runs that do nothing but compile; of a library, on the GPU."""
        dims = self.served.get("dims") or [64]
        first = f"--dim {dims[0]}" + " --causal" * (self.served.get("mask") == "causal")
        record = self.asked(kernel, first)
        found = re.search("serves (--(?:dim|dtype) .*) only", record.get("reason") or "")
        only = {}
        if found:
            first = found[1]
            record, named = self.asked(kernel, first), problems.parse(first)[0]
            only = {key: named[key] for key in named if "--" + key.replace("_", "-") in first.split()}
        tile = (self.own or self.row(kernel) or {}).get("defaults") or {}
        if not record.get("serves") and tile.get("m"):  # a rule may have taken a variant; with a tile option none does
            record = self.asked(kernel, f"{first} --m {tile['m']}") | {"needs": record.get("needs")}
        serves = [word for word in record.get("serves") or [] if word != "dim_v" or "dim_v" not in only]
        said = Said(serves, record.get("needs") or [], only, False, False, 1)
        if said.needs and record.get("status") == "infeasible":  # perhaps by lengths that are no whole tiles
            p = problems.parse(first)[0] | only
            first = problems.options(features.fitted(p, said.needs, *self.tile_of(kernel), 1e12))
            record = self.asked(kernel, first)
        if record.get("status") == "not_run" and self.runs_here(kernel):
            self.notes.append(f"NOT-RUN: features of {kernel} ({record.get('reason')})")
        if record.get("status") != "pass" or not serves:
            return said
        bf16 = not self.typed and self.asked(kernel, f"{first} --dtype bf16").get("status") == "pass"
        lse = self.asked(kernel, f"{first} --lse").get("status") == "pass"
        pages = self.asked(kernel, f"{first} --page-size 1") if "paged" in serves else {}
        rows = re.search("pages of a multiple of ([0-9]+) rows", pages.get("reason") or "")
        return said._replace(bf16=bf16, lse=lse, page_rows=int(rows[1]) if rows else 1)

    def asked(self, kernel, line):
        if self.is_library(kernel) or kernel.startswith("library:"):
            return self.probe(*self.command(kernel)[1:], *line.split()) if self.gpu else {}
        # Without a GPU an architecture that every kernel serves: the emulator runs them all.
        target = self.target if self.device_name else "sm_90a"
        arch = ["--arch", target] if "--arch" not in self.options.tile else []
        # With its tile: without one a variant may answer, which serves less.
        tile = [word for knob, value in (self.row(kernel).get("defaults") or {}).items()
                if knob in ("m", "n", "warps") for word in (f"--{knob}", str(value))]
        command = [*self.command(kernel), *tile, *self.typed.split(), "--compile-only", *arch, "--quiet", *line.split()]
        return (records_of(command) or [{}])[0]

    def fit(self, cases):
        """Cases that the kernel's needs leave out go to left_out; like ones that it serves take their place."""
        made = []
        for case in cases:
            args = self.fitted(case.kernel, case.args)
            if args[1]:
                self.left_out.append((case, args[1]))
            made.append(case._replace(args=args[0]))
        return list(dict.fromkeys(made))

    def fitted(self, kernel, line):
        if self.options.dtype == "e4m3":
            line = problems.of_fp8(line)
        if self.is_backward(kernel):  # the log-sum-exp is an input
            line = line.replace(" --lse", "")
        said = self.says(kernel)
        if not said.needs and not said.only:
            return line, ""
        return features.fitted_line(line, said.needs, *self.tile_of(kernel),
                                    problems.MOST_WORK[self.device, self.mode], said.only)

    def tile_of(self, kernel):
        """m and n of the options after --, of the kernel's defaults without them."""
        defaults = (self.own or self.row(kernel)).get("defaults") or {}
        given = dict(zip(self.options.tile, self.options.tile[1:]))
        return [int(given.get(f"--{knob}", defaults.get(knob, 64))) for knob in ("m", "n")]

    def featured(self, kernel, quick=False):
        """Problems of the features that the kernel serves."""
        said = self.says(kernel)
        limits, quick = {"dims": (), "mask": "both"} | self.served, quick or self.options.quick
        return [Case(kernel, "", self.start + problems.options(problems.served(p, **limits)),
                     feature=" ".join(words))
                for words, p in features.drawn(said.serves, self.device, self.mode, self.seed, quick, said.bf16,
                                               said.lse, said.page_rows, self.is_backward(kernel))]

    def command(self, kernel):
        """The bench with what selects the kernel and its operator, without a problem."""
        if self.options.source:
            operator = ["--op", "backward"] if getattr(self, "own", {}).get("op") == "backward" else []
            return [self.options.bench, "--source", self.options.source, *operator, *self.options.tile]
        if kernel.startswith("library:"):
            return [self.options.bench, "--library", kernel.removeprefix("library:")]
        return [self.options.bench, "--kernel", kernel, *(["--op", "backward"] if self.is_backward(kernel) else [])]

    def run_of(self, kernel, tool):
        device = "emu" if tool in EMULATOR_TOOLS else self.device
        return [*self.command(kernel), "--device", device]

    def row(self, kernel):
        return {} if self.options.source else self.rows.get(kernel, {})

    def is_library(self, kernel):
        return self.row(kernel).get("kind") == "library"

    def is_own(self, kernel):
        return bool(self.options.source) or kernel.startswith("library:")

    # The tiles of the kernel's own space, and of the spaces of the variants that its rules may take.

    def tiled(self, kernel):
        options, row = self.options, self.own or self.row(kernel)
        space, default = knobs.space_of(row, options.tile)
        lse = not self.is_backward(kernel) and (not self.own or bool(space) and self.writes_lse())
        runs = [("", self.start, name, tiles, shape) for name, tiles, shapes in
                knobs.runs(space, default, self.device, self.seed, self.mode, options.quick) for shape in shapes]
        if options.source and self.mode == "plain" and not options.quick:
            runs += [(tool, self.typed + more, *run) for tool, more, *run in
                     knobs.memory_runs(space, default, self.seed)]
        return [self.first(kernel, tool, start, (self.fitted(kernel, line)[0] for line in
                                                 knobs.lines(space, tiles, shape, lse, **self.served)), name)
                for tool, start, name, tiles, shape in runs]

    def first(self, kernel, tool, start, lines, knob):
        """The case of the first line; each other is tried where the one before it is infeasible."""
        chain = list(dict.fromkeys(Case(kernel, tool, start + line, knob) for line in lines))
        self.others |= {case: chain[i + 1] for i, case in enumerate(chain[:-1])}
        return chain[0]

    def writes_lse(self):
        dims = self.served.get("dims") or [64]
        return bool(self.compiled(dims[:1], "--lse --causal" if self.served.get("mask") == "causal" else "--lse"))

    # The cases: each rule of the registry that can match here with both masks, each class of fault, then draws.

    def derived(self, kernel, m):
        rules = self.row(kernel).get("rules")
        dtype = "e4m3" if self.options.dtype == "e4m3" else None
        found = problems.rule_problems(rules, self.run_of(kernel, ""), self.mode != "plain", dtype).values()
        return problems.listed(self.device, self.mode, m, self.draws, self.seed, of_rules=found, **self.served)

    def plain(self, kernel, m):
        options = self.options
        lines = self.derived(kernel, m) + (listed_problems(m, self.is_library(kernel)) if self.gpu else [])
        cases = [Case(kernel, "", self.start + line) for line in lines[::5 if options.quick else 1]]
        cases += self.featured(kernel)
        if options.race or options.quick:
            return cases
        if options.source or self.row(kernel).get("emulated") and not self.is_library(kernel):
            cases += self.memory(kernel, m)
        if options.source and not self.typed: # BF16 where it serves that, and more blocks than the emulator's time
            cases += [Case(kernel, "", line) for line in problems.listed(mode="own", m=m, **self.served)]
        return cases

    def memory(self, kernel, m):
        """What a result need not show, on the emulator, which says where: races, reads outside the tensors, reads of
        several elements at an address that is a multiple of one, and offsets that overflow."""
        undefined = "--sanitize undefined "
        tools = [("race", "--race --schedule random "), ("address", "--sanitize address "),
                 ("undefined", undefined + "--misalign 1 ")]
        lines = [(tool, options + line) for line in problems.listed(mode="memory", m=m, **self.served)
                 for tool, options in tools]
        lines += [("undefined", undefined + line) for line in problems.listed(mode="undefined", **self.served)]
        alone = {case.feature: case.args.removeprefix(self.typed) for case in self.featured(kernel)
                 if " " not in case.feature}
        lines += [(tool, f"{options}{line} --seeds 1") for line in alone.values() for tool, options in tools[:2]]
        return [Case(kernel, tool, self.typed + line) for tool, line in lines]

    def sanitized(self, kernel, m):
        """(number, case): each problem under each tool."""
        lines = sanitizer_problems(m, self.row(kernel), self.is_library(kernel))
        if not self.is_library(kernel):
            lines += self.derived(kernel, m)
        lines += [case.args for case in self.featured(kernel)]
        return [(number, Case(kernel, tool, f"{self.typed}--seeds 1 --timeout 500 {line}"))
                for number, line in enumerate(lines) if number % 5 == 0 or not self.options.quick
                for tool in SANITIZERS]

    def runs_here(self, kernel):
        return self.options.source or self.gpu or self.row(kernel).get("emulated")

    def cases(self):
        made = []
        for kernel in self.kernels:
            if not self.runs_here(kernel):
                continue
            m = ((self.own or self.row(kernel)).get("defaults") or {}).get("m", 64)
            variants = [name for name, row in self.rows.items() if row["variant_of"] == kernel and not self.own and
                        row.get("dtype") in (None, self.options.dtype)]
            gradients = [name for name in variants if self.is_backward(name)]  # another operator
            if self.options.dtype == "e4m3":
                variants = [name for name in variants if name not in gradients]
                gradients = []
            for name in [kernel, *gradients]:
                if self.options.sanitize:
                    made += [(number, fit) for number, case in self.sanitized(name, m) for fit in self.fit([case])]
                elif name == kernel or self.runs_here(name) and not self.options.quick:
                    made += self.fit(self.plain(name, m))
            alone = [name for name in variants if self.rows[name].get("dtype")] # of a type that the others do not take
            for name in [] if self.options.sanitize else alone or [kernel, *variants]:
                made += self.tiled(name) if self.runs_here(name) else []
                if name != kernel and self.runs_here(name) and not self.options.quick and not self.is_backward(name):
                    made += self.fit(self.featured(name, quick=True))
        if self.options.sanitize:  # problem by problem, so that a run that is cut off has tried every kernel
            made = [case for _, case in sorted(made, key=lambda numbered: numbered[0])]
        return made


def listed_problems(m, library):
    """Problems that every kernel serves on a GPU; m is the kernel's own row tile."""
    made = []
    for mask in ("", "--causal"):
        made += [f"--batch 2 --heads 4 --kv-heads 2 --seq {seq} {mask}"
                 for seq in (1, m - 1, m, m + 1, 113, 129, 799, 1023, 1024) if seq > 0]
        made += [f"--batch 1 --heads 8 --kv-heads 1 --seq 129 --seq-kv 799 --dim 128 {mask}",
                 f"--batch 1 --heads 3 --seq 799 --seq-kv 129 {mask}",
                 f"--batch 1 --heads 2 --seq 1 --seq-kv 1024 --dim 128 {mask}",
                 f"--batch 2 --heads 3 --seq 1024 --dim 128 {mask}", f"--batch 1 --heads 3 --seq 1023 --dim 256 {mask}"]
    if library:  # longer than the scores that a library keeps at once: in pieces, of several heads and of a part of one
        made += ["--batch 1 --heads 3 --seq 16384 --seeds 1",
                 "--batch 1 --heads 8 --kv-heads 1 --seq 16384 --causal --seeds 1"]
    made += [f"--batch 1 --heads 2 --seq 129 --dim {dim} --causal"
             for dim in (16, 24, 40, 72, 80, 96, 120, 128, 160, 192, 248, 256)]
    for dist in ("uniform", "outlier", "sharp", "rising", "falling", "needle", "constant-v", "coded"):
        made += [f"--batch 2 --heads 2 --seq 513 --dist {dist}",
                 f"--batch 2 --heads 2 --seq 513 --dim 128 --causal --dist {dist}"]
    return made + ["--batch 1 --heads 2 --seq 129 --misalign 1",
                   "--batch 1 --heads 2 --seq 129 --dim 72 --misalign 4 --causal"]


def sanitizer_problems(m, row, library):
    """The edges of the matrix in sequences of a few tiles, and other code than the default tile's."""
    made = [f"--batch 2 --heads 3 --seq 129 --dim 64 {mask}" for mask in ("", "--causal")]
    made += [f"--batch 1 --heads 2 --kv-heads 1 --seq 113 --seq-kv 257 --dim 128 {mask}" for mask in ("", "--causal")]
    made += ["--batch 1 --heads 3 --seq 199 --seq-kv 65 --dim 72 --causal"]  # rows without keys
    if library:  # one kernel of a library is ours, the softmax between its products
        return made
    made += [f"--batch 1 --heads 2 --seq {m + 1} --dim 40", "--batch 1 --heads 2 --seq 65 --dim 256 --causal",
             # more blocks than multiprocessors: the tiles for a full device
             "--batch 1 --heads 150 --seq 65 --dim 64 --causal",
             "--batch 1 --heads 150 --kv-heads 50 --seq 33 --dim 256",
             "--batch 1 --heads 2 --seq 1 --seq-kv 71 --dim 128",
             "--batch 1 --heads 2 --kv-heads 1 --seq 33 --dim 16 --misalign 1",
             f"--batch 1 --heads 2 --seq {max(1, m - 1)} --dim 248 --dist rising --misalign 4 --causal"]
    for knob in ("stages", "swizzle", "splits", "acc"):
        values = (row.get("values") or {}).get(knob) or []
        made += [f"--batch 1 --heads 2 --seq 113 --seq-kv 300 --dim 64 --causal --{knob} {value}"
                 for value in values if len(values) > 1 and value != row["defaults"][knob]]
    return made
