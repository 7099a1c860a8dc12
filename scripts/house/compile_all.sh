#!/usr/bin/env bash
# Compiles the tile space of the registry for several architectures, without a GPU; --run also runs every point.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/house/compile_all.sh [--run] [options]
  --kernel NAME[,NAME...]    only these; repeatable (default: every kernel; with --run those with a wmma tile grid)
  --arch LIST      comma-separated (default sm_80,sm_89,sm_90a); with --run one, the target and the limits (default: the
                   device's; sm_89 on the emulator)
  --dims LIST      comma-separated head dimensions (default 64,128)
  --sample N       N points per kernel, drawn with a fixed seed, instead of all
  --jobs N         at once (default: the cores)
  --out FILE       default build/compile_all.jsonl, a JSON line per point; with --run build/tile_grid.json, a table as
                   JSON, and FILE.points.jsonl, a line per point
  --dry-run        print how many points, do nothing
Compiling only:
  --defaults       only each kernel's default tile, and those of its rules, at the dims given
With --run:
  --problem TEXT   options of every run (default "--batch 1 --heads 2 --kv-heads 1 --seq 129 --seq-kv 150 --check cpu",
                   a tail of rows and of keys, more than one tile for every M and N of the default grid)
  --device WHERE   auto, cuda or emu (default auto)
  --skip REGEX     leave out the points that match, as in "--n 256 "
  --timeout SEC    per point (default 60)
  --seconds SEC    for all of them: points left by then are missing from the table (default 0: no limit)
  --resume         keep what FILE.points.jsonl has of the same kernel source, arch and problem, and run the rest
Compiling prints a table per kernel and architecture: points that compile, infeasible, failed, spilling, with warnings.
--run prints per kernel and dim how many points passed, were infeasible, and are holes: neither of the two.
Exit: 0, 1 when a point neither compiles (with --run: passes) nor is infeasible in its kernel's own words, when ptxas
serializes its wgmma, or a default spills or warns, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/points.sh
default_problem='--batch 1 --heads 2 --kv-heads 1 --seq 129 --seq-kv 150 --check cpu'
opt=([arch]='' [dims]='64,128' [sample]=0 [jobs]=$(nproc) [out]='' [problem]=$default_problem [device]=auto [skip]=''
    [timeout]=60 [seconds]=0)
flag=([run]=0 [defaults]=0 [resume]=0 [dry-run]=0)
many=([kernel]='')
parse_options "$@"
need_number 0 seconds
need_number 1 timeout
start_points
defaults=${flag[defaults]}

compile_points() {
    local out=${opt[out]:-build/compile_all.jsonl}
    # A default is asked for without knobs, so that the rules decide.
    registry_here | jqf tiles/points_compiled -r --argjson only "$only" --arg dims "${opt[dims]}" \
        --arg archs "${opt[arch]:-sm_80,sm_89,sm_90a}" --argjson defaults "$defaults" >"$work/all"
    choose_points
    export run_options='--compile-only' line=tiles/line_compiled
    run_points "$out"
    jqf tiles/table_compiled -rs "$out"
    jqf tiles/bad_compiled -r --argjson defaults "$defaults" "$out" >"$work/bad"
}

# The points that a --resume keeps: those of this very source, architecture and problem.
keep_points() { # FILE
    if [[ ${flag[resume]} -eq 1 && -e $1 ]]; then
        jqf tiles/kept -c --argjson now "$sources" --arg arch "$arch" --arg problem "${opt[problem]}" \
            --arg default "$default_problem" "$1" >"$work/kept"
        cp "$work/kept" "$1"
    fi
}

# The hash of each kernel's file with its includes, by kernel: the points of an edited kernel are run again.
sources_now() {
    local kernel
    awk '{print $2}' "$work/points" | sort -u | while read -r kernel; do
        "$bench" --kernel "$kernel" --arch "$arch" --compile-only --quiet --json - |
            jq -c --arg kernel "$kernel" '{($kernel): .provenance.source_sha256}'
    done | jq -cs add
}

run_all_points() {
    local out=${opt[out]:-build/tile_grid.json}
    registry_here | jqf tiles/points_run -r --argjson only "$only" --arg dims "${opt[dims]}" |
        { grep -vE -- "${opt[skip]:-^$}" || true; } | sed 's/ $//' | shuf --random-source=<(yes fa_bench) >"$work/all"
    choose_points
    arch=${opt[arch]}
    if [[ -z $arch ]]; then
        arch=$("$bench" --device "${opt[device]}" --seq 16 --seeds 1 --check cpu --timing none --quiet --json - |
            jq -r '.ptxas.arch // empty')
        [[ -n $arch ]] || die 4 "NOT-RUN: no device, or no compiler"
    fi
    sources=$(sources_now)
    keep_points "$out.points.jsonl"
    export OMP_NUM_THREADS=1 # many runs at once
    export arch sources problem=${opt[problem]} line=tiles/line_run
    export run_options="--arch $arch --device ${opt[device]} $problem --seeds 1 --timing none --timeout ${opt[timeout]}"
    run_points "$out.points.jsonl"
    jqf tiles/counts -nR "$work/points" >"$work/counts"
    jqf tiles/table_run -s --slurpfile all "$work/counts" "$out.points.jsonl" >"$out"
    jqf tiles/run_text -r "$out"
    jqf tiles/bad_run -r "$out.points.jsonl" >"$work/bad"
}

if [[ ${flag[run]} -eq 1 ]]; then run_all_points; else compile_points; fi
cat "$work/bad"
[[ ! -s $work/bad ]]
