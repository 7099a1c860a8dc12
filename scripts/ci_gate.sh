#!/usr/bin/env bash
# The gate: every kernel of the registry over problems that are derived from its rules and drawn from the whole contract
# (scripts/lib/gate/problems.py), every value of every knob of its tile (scripts/lib/gate/knobs.py), the emulator's
# primitives beside the GPU's, then speed ratios against the committed baseline of this GPU. Without a GPU the emulator
# runs the same classes at small sizes and the rest is NOT-RUN.
#
# usage: scripts/ci_gate.sh [options]
#   --require-gpu     no GPU, or no emulator beside it, is a failure, not a NOT-RUN
#   --kernel NAME[,NAME...]  only these kernels (repeatable)
#   --library FILE    the matrix for this library (include/fa_library.h) instead (repeatable; GPU only): what it refuses
#                     in its own words is skipped
#   --source FILE.cu  a kernel that is not registered; its tile options, if any, after --
#   --dtype TYPE      fp16 (default), bf16 or e4m3: the matrix in that type. Without --kernel only kernels that serve it
#   --draws N         problems drawn at random for each kernel (default: 60; emulator: 12; --race: 6; --sanitize: 4)
#   --seed S          of the draws (default: a new one each time, so that no kernel is made for the draws; --race,
#                     --sanitize: 1). The gate says it; each draw is a line of options, so a failing one runs alone
#   --fail-fast       begin no case after one that failed
#   --shrink SEC      how long to look for the smallest problem that still fails, a kernel (default: 30; 0: do not)
#   --out DIR         records, junit.xml and summary.json (default: build/gate)
#   --jobs N          runs at once while checking (default: the cores); timing is always one at a time
#   --sanitize        compute-sanitizer's four tools over every kernel instead of the matrix: one seed, short sequences,
#                     every edge of the matrix, and each value of the knobs that choose other code
#   --race            the emulator's matrix under its race detector, one seed, whatever GPU there is
#   --conform         conformance of the emulator alone: tests/emu/conform, tests/emu/ptx and, on sm_90,
#                     tests/emu/hopper give the same words there and on the GPU
#   --resume FILE     with --sanitize: cases.jsonl of an earlier run, or .gz. A case that did not fail there, with the
#                     same options on the same kind of GPU and the same machine code (of a library: version and sources
#                     around it), is taken over with its commit
#   --quick           a fifth of the matrix; one problem of each feature; of the tile space one other value of each
#                     knob, drawn by the seed; no pairs
#   --seconds SEC     begin no case after so long, end those that run ten seconds later: the rest is NOT-RUN
#   --dry-run         print the runs, do nothing
# The tile space: FA_SPACE of the file, or of the kernel's row and its variants'. Each value of each knob has small
# problems, all other knobs at their defaults; then pairs of values, drawn by the seed (on a GPU 32 of a kernel at most,
# on the emulator 12; --race: no pairs). A tile that is infeasible gives way to others with the same value; a value for
# which none is feasible is skipped and named. A knob in the options after -- stays as it is. Libraries have no space.
# Features (docs/features.md): those that the kernel serves, alone and in pairs drawn by the seed. What it needs leaves
# problems out: they are skipped with the reason, and problems like them take their place.
# Exit: 0 all passed, 1 something failed, 2 usage, 4 nothing could run, or not all of it. FA_BENCH names the binary
# (default ./fa_bench), EMU_CASE that for conformance kernels (default: beside FA_BENCH, or build/tests/emu/emu_case).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
opt=([out]='' [jobs]=$(nproc) [seconds]=0 [resume]='' [source]='' [draws]="" [seed]="" [shrink]=30
    [dtype]=fp16)
flag=([require-gpu]=0 [sanitize]=0 [race]=0 [conform]=0 [quick]=0 [dry-run]=0 [fail-fast]=0)
many=([kernel]='' [library]='')
arguments=bench
parse_options "$@"
need_number 1 jobs
for name in draws seed; do [[ -z ${opt[$name]} ]] || need_number 0 "$name"; opt[$name]=${opt[$name]:--1}; done
need_number 0 seconds shrink
[[ -z ${FA_BENCH:-} ]] || bench=$(from_caller "$FA_BENCH")
for name in out source resume; do opt[$name]=$(from_caller "${opt[$name]}"); done
opt[out]=${opt[out]:-build/gate}
for ((i = 1; i < ${#more[@]}; i++)); do [[ ${more[i - 1]} != --include ]] || more[i]=$(from_caller "${more[i]}"); done
mapfile -t libraries < <(values_of library | while read -r name; do from_caller "$name"; done)
[[ ${#libraries[@]} -eq 0 ]] || many[library]=$(printf '%s\n' "${libraries[@]}")$'\n'
modes=$((flag[sanitize] + flag[race] + flag[conform]))
[[ $modes -le 1 ]] || die 2 "one of --sanitize, --race, --conform"
[[ -z ${opt[source]} || -z ${many[kernel]} ]] || die 2 "--source or --kernel, not both"
[[ -z ${opt[source]} || (-f ${opt[source]} && -r ${opt[source]}) ]] ||
    die 2 "--source takes a file that can be read, not '${opt[source]}'"
[[ -n ${opt[source]} || ${#more[@]} -eq 0 ]] || die 2 "options after -- are for --source"
[[ ${opt[dtype]} =~ ^(fp16|bf16|e4m3)$ ]] || die 2 "--dtype takes fp16, bf16 or e4m3, not '${opt[dtype]}'"
[[ ${flag[conform]} -eq 0 || "${opt[source]}${many[kernel]}${opt[dtype]}" == fp16 ]] ||
    die 2 "--conform is about the emulator alone: no --kernel, --source, --dtype"
[[ ${#libraries[@]} -eq 0 || -z ${opt[source]}${many[kernel]} ]] || die 2 "--library and --kernel are two gates"
[[ ${#libraries[@]} -eq 0 || $modes -eq 0 ]] ||
    die 2 "--library goes over the matrix alone: no --sanitize, --race, --conform"
for name in "${libraries[@]}"; do
    { is_input "$name" && [[ $name != *'|'* ]]; } || die 2 "--library takes a file that can be read, not '$name'"
done
[[ -z ${opt[resume]} ]] || { [[ ${flag[sanitize]} -eq 1 ]] && is_input "${opt[resume]}"; } ||
    die 2 "--resume takes cases.jsonl of an earlier --sanitize, not '${opt[resume]}'"
[[ -x $bench ]] || die 4 "NOT-RUN: no $bench: run make"
if [[ -n ${opt[resume]} ]]; then
    need_jq
    make_work
    read_json case "${opt[resume]}" >/dev/null
fi
need_python

asked=("bench=$bench")
for name in "${!opt[@]}"; do asked+=("$name=${opt[$name]}"); done
for name in "${!flag[@]}"; do asked+=("${name/-/_}=${flag[$name]}"); done
for name in "${!many[@]}"; do asked+=("$name=${many[$name]}"); done
[[ -z ${work:-} ]] || rm -rf "$work"
exec python3 scripts/lib/gate/cases.py "${asked[@]}" -- "${more[@]}"
