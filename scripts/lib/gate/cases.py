#!/usr/bin/env python3
"""The gate: runs the cases, several of one kernel in one process, judges each, and says what they come to.

cases.py NAME=VALUE... -- [tile options of --source]      the options of scripts/ci_gate.sh, which starts this
"""
import collections
import concurrent.futures
import gzip
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import conform
import problems
from problems import parsed, records_of
from subjects import EMULATOR_TOOLS, QUIET, Subjects, compact, die, options_of, read, seconds_of, write, write_json

CODES = {"pass": 0, "wrong": 1, "usage": 2, "infeasible": 3, "not_run": 4, "timeout": 5, "error": 6}
FOUND, KILLED = 9, 137  # a sanitizer found something; a process ended before it could say
VERDICTS = ("passed", "failed", "skipped", "not_run")
CORES = len(os.sched_getaffinity(0))
START = time.monotonic()


def last_line(text):
    return next((line for line in reversed(text.split("\n")) if line), "")


def shown(case):
    """Why a case failed: every line of a record's reason, the last one of a tool's output."""
    whole = case["tool"] in ("", *EMULATOR_TOOLS)
    return case["text"].strip("\n").replace("\n", "\n     ") if whole else last_line(case["text"])


def findings(text):
    """How many errors a sanitizer counts; None without its summary. That the bench ended with another code than 0 is an
    error to it; the bench's record has the reason."""
    found, has_summary = 0, False
    for line in text.split("\n"):
        found += bool(re.search("ERROR SUMMARY:.*not printed", line)) - ("Target application returned an error" in line)
        if " SUMMARY: " in line:
            has_summary = True
            found += int(re.match(r"\d*", line.rpartition(" SUMMARY: ")[2])[0] or 0)
    return max(found, 0) if has_summary else None


def may_skip(case, code, library, own, gpu):
    """Whether a case that ended with this code is skipped and has not failed."""
    if code == 4:  # what the emulator cannot run, or has no compiler for, the GPU's cases have shown to run
        return library or gpu and case.tool in EMULATOR_TOOLS
    if code == 5:  # a problem with a time of its own is large for the emulator; a deadlock is found without a clock
        return own and "--timeout" in case.args
    # A library's plans are for one layout; a file of one's own may serve less than the contract; so may a tile.
    return code == 3 and (library or own or case.tool or case.knob or case.feature
                          or re.search("--misalign|--lse|--strides far|--strides odd", case.args))


def judged(case, record, code, text, subjects, key):
    """A case with its verdict, from its record, the output of its process and its exit code; key: what its machine code
    is known by. Where a process had several runs, a record knows its own code."""
    library, status = subjects.is_library(case.kernel), record.get("status")
    if not (subjects.options.sanitize and code in (FOUND, KILLED)):
        code = CODES.get(status, code)
    # What a tool finds in the kernels of a library, and none of ours in the report: not ours to judge.
    theirs = code == FOUND and library and case.tool and not re.search(r" in [a-z_0-9]+[.]cuh?:", text)
    # The plain reference is checked against the CPU's in every case: a wrong one is the bench's own fault.
    missing = (record.get("check") or {}).get("missing") or ""
    plain = re.search("plain: its own result is wrong.*", missing)
    verdict = "passed" if code == 0 and status == "pass" and not plain else "failed"
    if theirs or may_skip(case, code, library, subjects.is_own(case.kernel), subjects.gpu):
        verdict = "skipped"
    if status == "not_run" and subjects.rows.get(case.kernel, {}).get("missing"):
        verdict, reason = "not_run", f"NOT-RUN: {record['reason']}"  # headers of another project, say
    elif status and (not case.tool or status != "pass" and code != FOUND):
        own = record.get("reason") or ""
        lines = [line for line in text.split("\n") if line.startswith("fa_bench: error: ") and own not in line]
        reason = "\n".join([f"{status}: {own}", *(lines[-3:] if status == "error" else [])])
    else:
        reason = text[-1500:].rstrip("\n")
        if theirs:
            where = re.findall("at ([A-Za-z_0-9]+)", text)[:1]
            reason += ": ".join(["\n\nthe tool finds something in the library, not in our kernels", *where])
    if plain and status == "pass":
        reason += f"the reference: {plain.group()}"
    made = record.get("provenance") or {}
    return {**case._asdict(), "verdict": verdict, "code": code, "seconds": seconds_of(record), "text": reason,
            "gpu": subjects.device_name, "variant": record.get("variant"), "fault": record.get("fault"),
            "arch": (record.get("ptxas") or {}).get("arch"), "problem": record.get("problem"),
            "config": record.get("config"), "code_sha256": key if "." in key else made.get("code_sha256"),
            "source_sha256": made.get("source_sha256"), "git": made.get("git")}


class Gate:
    def __init__(self, subjects, cases):
        self.subjects, self.options, self.list = subjects, subjects.options, cases
        self.done = {}  # by number in the list
        # What a kernel's needs leave out; then conformance and speed.
        self.more = [{**case._asdict(), "verdict": "skipped", "code": None, "seconds": None,
                      "text": f"infeasible: {case.kernel} {why}"} for case, why in subjects.left_out]
        self.keys = {}
        self.stopped = threading.Event()
        self.records = f"{self.options.out}/records"
        self.pool = concurrent.futures.ThreadPoolExecutor(self.options.jobs)

    def failed_fast(self):
        return self.options.fail_fast and any(case["verdict"] == "failed" for case in list(self.done.values()))

    def is_over(self):
        return self.stopped.is_set() or 0 < self.options.seconds <= time.monotonic() - START or self.failed_fast()

    def command(self, case):
        """What runs cases of one kernel, without them, and its environment."""
        command = self.subjects.run_of(case.kernel, case.tool) + QUIET
        if not case.tool:
            command += ["--check", "cpu,cublas,plain"]
        # Each check gets its share of the cores: threads of many checks that spin for one another only take turns.
        env = os.environ | {"OMP_NUM_THREADS": str(-(-CORES // self.options.jobs)), "OMP_WAIT_POLICY": "passive"}
        if self.options.sanitize:
            env = os.environ | {"OMP_NUM_THREADS": "1"}  # for the reference: the cores are full of other cases
            # Kernels of libraries have more barriers than the tool makes room for, and then it stops them.
            room = ["--num-cuda-barriers", "100000"] if case.tool == "synccheck" else []
            command = ["compute-sanitizer", "--tool", case.tool, "--target-processes", "all", "--error-exitcode",
                       str(FOUND), "--show-backtrace", "device", *room, *command, "--check", "cpu"]
        if self.options.seconds:
            left = int(self.options.seconds + 10 - (time.monotonic() - START))
            command = ["timeout", "--kill-after=2", str(max(1, left)), *command]
        return command, env

    def unit(self, numbers):
        """Cases of one kernel under one tool, in one process: with its context, and what a sanitizer does first, once
        for all. A sanitizer's findings are of no case in particular, and what has no record may be another's fault:
        then each gets a process of its own."""
        if self.is_over():
            return
        alone, at, first = len(numbers) == 1, f"{self.records}/{numbers[0]}", self.list[numbers[0] - 1]
        command, env = self.command(first)
        if alone:
            Path(f"{at}.json").unlink(missing_ok=True)  # of a run with others
            command += ["--json", f"{at}.json", *first.args.split()]
        else:
            write(f"{at}.runs", "".join(self.list[number - 1].args + "\n" for number in numbers))
            command += ["--runs", f"{at}.runs", "--jobs", "1", "--json", f"{at}.jsonl"]
        with open(f"{at}.txt", "wb") as file:
            code = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                  check=False).returncode
        code = code if code >= 0 else 128 - code  # of a signal, as the shell has it
        records, text = self.records_of(numbers, at, alone), read(f"{at}.txt")
        cut = self.options.seconds and code in (124, KILLED)
        if self.options.sanitize and not cut:
            found = findings(text)
            code = KILLED if found is None else FOUND if found else code
            settled = all(records[n].get("status") in ("pass", "infeasible", "not_run") for n in numbers)
            if not alone and (code in (FOUND, KILLED) or not settled):
                for number in numbers:
                    self.unit([number])
                return
        for number in numbers:
            if cut and (self.options.sanitize or not records[number]):
                continue  # not reached: a tool says at the end what it found
            case = self.list[number - 1]
            if records[number].get("status") == "infeasible" and case in self.subjects.others:
                self.list[number - 1] = self.subjects.others[case]
                self.unit([number])
            elif records[number] or alone:
                self.done[number] = judged(case, records[number], code, text, self.subjects, self.keys.get(case, ""))
            else:
                self.unit([number])

    def records_of(self, numbers, at, alone):
        """The record of each case, {} where there is none; also in records/NUMBER.json, as if it had been alone."""
        if alone:
            return {numbers[0]: parsed(read(f"{at}.json"))}
        records = dict.fromkeys(numbers, {})
        for record in filter(None, map(parsed, read(f"{at}.jsonl").splitlines())):
            number = numbers[record["provenance"]["line"] - 1]
            records[number] = record
            write(f"{self.records}/{number}.json", compact(record))
        return records

    def units(self):
        """In the order of the list: what is cut off has tried every kernel. The emulator has nothing to share."""
        size = 6 if self.options.sanitize else 8 if self.subjects.gpu else 1
        made, seen = collections.defaultdict(list), collections.Counter()
        for number, case in enumerate(self.list, 1):
            if number not in self.done:
                group = (case.kernel, case.tool)
                made[seen[group] // (1 if case.tool in EMULATOR_TOOLS else size), group].append(number)
                seen[group] += 1
        return list(made.values())

    def run(self):
        """What is done is written again as cases finish, so that a gate that is cut off leaves it."""
        begun = {self.pool.submit(self.unit, numbers): len(numbers) for numbers in self.units()}
        finished = 0
        for unit in concurrent.futures.as_completed(begun):
            unit.result()
            finished += begun[unit]
            self.show(f"{finished} of {sum(begun.values())} cases")
            if finished // 20 > (finished - begun[unit]) // 20:
                self.write(f"unfinished: {len(self.done)} of {len(self.list)} cases")
        self.show("")
        if self.failed_fast():
            return
        self.more += [{**case._asdict(), "verdict": "not_run", "code": None, "seconds": None,
                       "text": "NOT-RUN: the time limit came first"}
                      for number, case in enumerate(self.list, 1) if number not in self.done]

    def show(self, text):
        """On a terminal, one line that the next one replaces; nothing: takes it away."""
        if sys.stderr.isatty():
            failed = sum(case["verdict"] == "failed" for case in self.done.values())
            words = f"ci_gate.sh: {text}" + (f", {failed} failed" if failed else "") if text else ""
            print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)

    def all(self):
        return [self.done[number] for number in sorted(self.done)] + self.more

    def write(self, note):
        cases = self.all()
        write(f"{self.options.out}/cases.jsonl", "".join(map(compact, cases)))
        write_json(f"{self.options.out}/summary.json", summary(cases, self.subjects, note))

    # --resume: cases that an earlier run has settled with the same machine code.

    def find_keys(self):
        """What each case is made with: the machine code of a kernel; of a library its version and the sources around
        it, as "VERSION.SHA"."""
        of_kernel = collections.defaultdict(list)
        for case in self.list:
            of_kernel[case.kernel].append(case)
        for keys in self.pool.map(self.keys_of, of_kernel, of_kernel.values()):
            self.keys |= keys

    def keys_of(self, kernel, cases):
        if self.subjects.is_library(kernel):
            sources = [*sorted(Path("src/cuda").glob("cu*")), Path("src/cuda/softmax.cu")]
            sha = hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest()
            version = (self.subjects.probe("--kernel", kernel).get("provenance") or {}).get("compiler") or ""
            return dict.fromkeys(cases, f"{version.replace(' ', '_')}.{sha}")
        lines, target = list(dict.fromkeys(case.args for case in cases)), self.subjects.target
        command = [*self.subjects.command(kernel), "--compile-only", *(["--arch", target] if target else []), "--quiet"]
        made = [record["provenance"] for record in records_of(command, lines)]
        codes = {lines[one["line"] - 1]: one.get("code_sha256") for one in made}
        return {case: codes.get(case.args) or "none" for case in cases}

    def take_over(self, earlier):
        settled = {}
        for case in filter(None, map(parsed, earlier.splitlines())):
            if case["verdict"] in ("passed", "skipped") and case.get("gpu") == self.subjects.device_name:
                settled[case["kernel"], case["tool"], case["args"], case.get("code_sha256")] = case
        found = {number: settled.get((*case[:3], self.keys[case])) for number, case in enumerate(self.list, 1)}
        self.done = {number: case for number, case in found.items() if case}
        print(f"{len(self.done)} of {len(self.list)} cases are those of {self.options.resume}")

    def say_smallest(self):
        """The smallest problem that fails as the first failing one of each kernel does, as a command."""
        first = {}
        for case in self.all():
            if case["verdict"] == "failed" and case["tool"] in ("", *EMULATOR_TOOLS) and case["code"] in (1, 6):
                first.setdefault(case["kernel"], case)
        with open(f"{self.options.out}/smallest", "w", encoding="utf-8") as file:
            for kernel, case in sorted(first.items()):
                command = self.subjects.run_of(kernel, case["tool"])
                line, code = problems.shrunk(case["args"], command + QUIET, self.options.shrink)
                text = f"smallest that fails: {shlex.join(command)} {line}" + " # did not fail again" * (code == 0)
                print(text)
                print(text, file=file)


def counts(cases, key):
    """How many cases of each kernel or tool have each verdict, and these cases."""
    for value in sorted({case[key] for case in cases}):
        its = [case for case in cases if case[key] == value]
        yield {key: value} | {name: sum(case["verdict"] == name for case in its) for name in VERDICTS}, its


def of_knobs(cases):
    """Of the values of a kernel's knobs, and of pairs of them: how many, and those without a tile that is feasible."""
    by_name = collections.defaultdict(set)
    for case in cases:
        by_name[case.get("knob")].add(case["verdict"] == "skipped")
    names = sorted(filter(None, by_name))
    return names and {"values": sum(" " not in name for name in names), "pairs": sum(" " in name for name in names),
                      "infeasible": [name for name in names if by_name[name] == {True}]}


def of_features(kernel, cases, subjects):
    """What the kernel says that it serves and needs, how many problems of the former, and how many the latter leaves
    out."""
    said = subjects.said.get(kernel)
    if not said or not (said.serves or said.needs):
        return {}
    names = {case.get("feature") for case in cases} - {None, ""}
    # A variant that was not asked for by name has none in the quick gate.
    refused = {word for word in said.serves if names or not subjects.row(kernel).get("variant_of")} - {
        word for case in cases if case["verdict"] != "skipped" for word in (case.get("feature") or "").split()}
    return {"serves": said.serves, "needs": said.needs, "pairs_of_features": sum(" " in name for name in names),
            "not_tried": sorted(refused),
            "left_out": sum(1 for case, _ in subjects.left_out if case.kernel == kernel)}


def summary(cases, subjects, note):
    options = subjects.options
    made = {"what": "race"} if options.race else {}
    made |= {"device": subjects.device, "dtype": options.dtype, "note": note, "draws": subjects.draws,
             "seed": subjects.seed, "kernels": []}
    for counted, its in counts(cases, "kernel"):
        knobs = of_knobs(its)
        counted |= {"knobs": knobs} if knobs else {}
        counted |= of_features(counted["kernel"], its, subjects)
        if options.sanitize:
            counted |= {key: sorted({case.get(key) for case in its} - {None}) for key in ("git", "source_sha256")}
        made["kernels"].append(counted)
    if options.sanitize:
        keys = ("kernel", "tool", "args", "verdict", "code")
        made |= {"what": "sanitize", "gpu": subjects.device_name, "problems": len({case["args"] for case in cases}),
                 "tools": [counted for counted, _ in counts(cases, "tool")],
                 "not_passed": [{key: case[key] for key in keys} | {"why": last_line(case["text"])}
                                for case in cases if case["verdict"] in ("failed", "skipped")]}
    return made


def write_junit(cases, path):
    def clean(text):
        return re.sub("[^\t\n\r\u0020-\ud7ff]", "", text)
    verdicts = collections.Counter(case["verdict"] for case in cases)
    suite = xml.Element("testsuite", name="ci_gate", tests=str(len(cases)), failures=str(verdicts["failed"]),
                        errors="0", skipped=str(verdicts["skipped"] + verdicts["not_run"]),
                        time=str(round(sum(case["seconds"] or 0 for case in cases), 3)))
    for case in cases:
        made = xml.SubElement(suite, "testcase", classname=clean(case["kernel"]),
                              name=clean(f"{case['tool']} {case['args']}"))
        if case["seconds"] is not None:  # a case that left no record has no time
            made.set("time", str(round(case["seconds"], 3)))
        if case["verdict"] == "failed":
            xml.SubElement(made, "failure", message=f"exit {case['code']}").text = clean(case["text"])
        elif case["verdict"] != "passed":
            xml.SubElement(made, "skipped", message=clean(case["text"]))
    xml.indent(suite)
    xml.ElementTree(suite).write(path, encoding="UTF-8", xml_declaration=True)


def say(cases, subjects):
    for counted, its in counts(cases, "kernel"):
        why = [case["text"] for case in its if case["verdict"] == "not_run"][:1]
        late = "".join(f", {counted['not_run']} {text}" for text in why)
        print("{kernel}: {passed} passed, {failed} failed, {skipped} skipped".format(**counted) + late)
        knobs = of_knobs(its)
        if knobs:
            none = "; infeasible: " * bool(knobs["infeasible"]) + ", ".join(knobs["infeasible"])
            print("    of its tile space: {values} values, {pairs} pairs".format(**knobs) + none)
        said = of_features(counted["kernel"], its, subjects)
        if said:
            none = f"; none of its problems ran: {', '.join(said['not_tried'])}" if said["not_tried"] else ""
            out = f", which leaves out {said['left_out']} problems" if said["left_out"] else ""
            print(f"    serves {', '.join(said['serves']) or 'dense forward alone'} "
                  f"({said['pairs_of_features']} pairs{none}); needs {', '.join(said['needs']) or 'nothing'}{out}")
    if subjects.draws and not subjects.options.conform:
        print(f"{subjects.draws} draws of seed {subjects.seed}")
    if subjects.notes:
        print("; ".join(subjects.notes))


def earlier_cases(path):
    """Read before anything is written: it may be the file that this run writes."""
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode(errors="replace")


def main(words):
    sys.stdout.reconfigure(line_buffering=True)
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)  # as the shell that started this
    options = options_of(words)
    subjects = Subjects(options)
    if options.require_gpu and not subjects.gpu:  # before any work
        print("FAIL no GPU, and --require-gpu")
        return 1
    if options.dry_run:
        print("".join("|".join(case[:3]) + "\n" for case in subjects.cases()), end="")
        return 0
    if options.sanitize and not subjects.gpu:
        die(4, "NOT-RUN: compute-sanitizer needs a GPU")
    if options.sanitize and not shutil.which("compute-sanitizer"):
        die(4, "NOT-RUN: no compute-sanitizer in PATH")
    if options.library and not subjects.gpu:
        die(4, "NOT-RUN: a library needs a GPU")
    earlier = earlier_cases(options.resume) if options.resume else None
    gate = Gate(subjects, subjects.cases())
    shutil.rmtree(gate.records, ignore_errors=True)
    os.makedirs(gate.records)
    signal.signal(signal.SIGTERM, lambda *_: gate.stopped.set())  # what there is goes into the summary
    try:
        if options.sanitize:
            gate.find_keys()
        if earlier is not None:
            gate.take_over(earlier)
        gate.run()
        missing = conform.compare(gate)
    except BaseException:
        gate.stopped.set()
        raise
    gate.write("; ".join(subjects.notes))
    cases = gate.all()
    write_junit(cases, f"{options.out}/junit.xml")
    for case in cases:
        if case["verdict"] == "failed":
            print(f"FAIL {case['kernel']} {case['tool']} {case['args']}  (exit {case['code']})\n"
                  f"     {shown(case)}")
    if options.shrink and not gate.stopped.is_set():
        gate.say_smallest()
    say(cases, subjects)
    if missing:
        print(f"FAIL no {missing} for the conformance of the emulator, and --require-gpu")
        return 1
    verdicts = {case["verdict"] for case in cases}
    if verdicts == {"skipped"}:
        die(4, f"NOT-RUN: no problem is served: {cases[0]['text'].partition(chr(10))[0]}")
    return 1 if "failed" in verdicts or not cases else 4 if "not_run" in verdicts else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        die(4, f"NOT-RUN: {error.filename or 'standard output'}: {error.strerror}")
