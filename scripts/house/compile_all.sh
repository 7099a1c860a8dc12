#!/usr/bin/env bash
# Compiles the tile space of the registry for several architectures, without a GPU; --run also runs every point.
#
# usage: scripts/house/compile_all.sh [--run] [options]
#   --kernel NAME[,NAME...]    only these; repeatable (default: every kernel; with --run those with a wmma tile grid)
#   --arch LIST      comma-separated (default sm_80,sm_89,sm_90a); with --run one, the target and the limits (default:
#                    the device's; sm_89 on the emulator)
#   --dims LIST      comma-separated head dimensions (default 64,128)
#   --sample N       N points per kernel, drawn with a fixed seed, instead of all
#   --jobs N         at once (default: the cores)
#   --out FILE       default build/compile_all.jsonl, a JSON line per point; with --run build/tile_grid.json, a table as
#                    JSON, and FILE.points.jsonl, a line per point
#   --dry-run        print how many points, do nothing
# Compiling only:
#   --defaults       only each kernel's default tile, and those of its rules, at the dims given
# With --run:
#   --problems FILE  what every tile runs on, a line of options each (default scripts/lib/tiles/problems.txt)
#   --device WHERE   auto, cuda or emu (default auto)
#   --timeout SEC    per point (default 60)
#   --seconds SEC    for all of them: points left by then are missing from the table (default 0: no limit)
#   --resume         keep what FILE.points.jsonl has of the same kernel source, arch and options, and run the rest
# Compiling prints a table per kernel and architecture: points that compile, infeasible, failed, spilling, with
# warnings.
# --run prints per kernel and dim how many points passed, were infeasible, and are holes: neither of the two.
# Exit: 0, 1 when a point neither compiles (with --run: passes) nor is infeasible in its kernel's own words, when ptxas
# serializes its wgmma, or a default spills or warns, 2 usage, 4 not run, 6 a point left no record. FA_BENCH names the
# binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/points.sh
opt=([arch]='' [dims]='64,128' [sample]=0 [jobs]=$(nproc) [out]='' [problems]=$lib/tiles/problems.txt [device]=auto
    [timeout]=60 [seconds]=0)
flag=([run]=0 [defaults]=0 [resume]=0 [dry-run]=0)
many=([kernel]='')
parse_options "$@"
need_number 0 seconds
need_number 1 timeout
is_input "${opt[problems]}" || die 2 "--problems takes a file that can be read, not '${opt[problems]}'"
start_points
defaults=${flag[defaults]}

compile_points() {
    local out=${opt[out]:-build/compile_all.jsonl}
    # A default is asked for without knobs, so that the rules decide.
    jqf tiles/points_compiled -r --argjson only "$only" --arg dims "${opt[dims]}" \
        --arg archs "${opt[arch]:-sm_80,sm_89,sm_90a}" --argjson defaults "$defaults" <<<"$registry" >"$work/all"
    choose_points
    line=(tiles/line_compiled)
    run_points "$work/out" --compile-only
    refuse_not_run "$work/out"
    replace_file "$out" <"$work/out"
    jqf tiles/table_compiled -rs "$out"
    jqf tiles/bad_compiled -r --argjson defaults "$defaults" "$out" >"$work/bad"
}

run_all_points() {
    local out=${opt[out]:-build/tile_grid.json} arch=${opt[arch]} device sources
    [[ ${flag[resume]} -eq 0 || ${flag[dry-run]} -eq 1 ]] || go_on_with tile "$out.points.jsonl"
    jqf tiles/points_run -r --argjson only "$only" --arg dims "${opt[dims]}" <<<"$registry" |
        awk 'FNR == NR {if ($0 !~ /^ *(#|$)/) problem[++n] = $0; next} {for (i = 1; i <= n; i++) print $0 problem[i]}' \
            "${opt[problems]}" - | shuf --random-source=<(yes fa_bench) >"$work/all"
    choose_points
    read -r device arch < <("$bench" --device "${opt[device]}" ${arch:+--arch "$arch"} --seq 16 --seeds 1 --check cpu \
        --timing none --quiet --json - | jq -r '"\(.device.backend // "-") \(.ptxas.arch // "")"') || true
    [[ -n ${arch:-} ]] || die 4 "NOT-RUN: no device, or no compiler"
    # The hash of each kernel's file with its includes: the points of an edited kernel are run again.
    awk '{print $1, $2}' "$work/points" | sort -u >"$work/kernels"
    "$bench" --arch "$arch" --compile-only --runs "$work/kernels" --quiet --json "$work/records" || true
    refuse_not_run "$work/records"
    sources=$(jq -cs 'map({(.kernel): .provenance.source_sha256}) | add' "$work/records")
    if [[ ${flag[resume]} -eq 1 && -e $out.points.jsonl ]]; then
        jqf tiles/kept -nc --argjson now "$sources" --arg arch "$arch" --rawfile points "$work/all" \
            "$out.points.jsonl" >"$work/kept"
        cp "$work/kept" "$out.points.jsonl"
    fi
    [[ $device != cuda ]] || compile_ahead --arch "$arch"
    line=(tiles/line_run --arg arch "$arch" --argjson sources "$sources")
    run_points "$out.points.jsonl" --arch "$arch" --device "${opt[device]}" --seeds 1 --timing none \
        --timeout "${opt[timeout]}"
    jqf tiles/counts -nR "$work/points" >"$work/counts"
    jqf tiles/table_run -s --slurpfile all "$work/counts" "$out.points.jsonl" >"$work/table"
    replace_file "$out" <"$work/table"
    jqf tiles/run_text -r "$out"
    jqf tiles/bad_run -r "$out.points.jsonl" >"$work/bad"
}

if [[ ${flag[run]} -eq 1 ]]; then run_all_points; else compile_points; fi
cat "$work/bad"
[[ ! -s $work/bad ]]
