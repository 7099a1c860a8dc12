#!/usr/bin/env bash
# Runs every point of a kernel's tile grid: each one passes, or is infeasible in words, within the timeout; counts both.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/tile_grid.sh [options]
  --kernel NAME    repeatable (default: every kernel with a wmma tile grid)
  --dims LIST      head dimensions (default 64,128)
  --arch sm_XX     target of the compiler's figures and of the limits (default: the device's; sm_89 on the emulator)
  --problem TEXT   options of every run (default "--batch 1 --heads 2 --kv-heads 1 --seq 129 --seq-kv 150 --check cpu": a tail of rows and
                   of keys, more than one tile for every M and N of the default grid)
  --device WHERE   auto, cuda or emu (default auto)
  --sample N       N points per kernel, drawn with a fixed seed, instead of all
  --skip REGEX     leave out the points that match, as in "--n 256 "
  --timeout SEC    per point (default 60)
  --seconds SEC    for all of them: those that are left then are missing from the table (default 0: no limit)
  --jobs N         at once (default: the cores)
  --out FILE       table as JSON (default build/tile_grid.json); FILE.points.jsonl holds every point
  --resume         go on from FILE.points.jsonl: what stands there with the same kernel source, arch and problem is not run again
  --dry-run        print how many points
Exit: 0 no holes, 1 a point neither passed nor was infeasible in words, 2 usage, 4 not run. FA_BENCH names the binary.
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/points.sh
default_problem='--batch 1 --heads 2 --kv-heads 1 --seq 129 --seq-kv 150 --check cpu'
opt=([problem]=$default_problem [dims]='64,128' [arch]='' [device]=auto [sample]=0 [skip]='' [timeout]=60 [seconds]=0 [jobs]=$(nproc) [out]=build/tile_grid.json) flag=([resume]=0 [dry-run]=0)
parse_options "$@"
out=${opt[out]}

# The grid of the registry's row without the knobs that only vary the layout (swizzle) or the class (acc).
"$bench" --list-kernels --json - | jq -r --argjson only "$only" --arg dims "${opt[dims]}" '
    .[] | select(.kind == "hand") | select(if ($only | length) > 0 then .name as $n | $only | index($n) else .tensor_cores == "wmma" end) |
    .name as $k | ($dims | split(",")[]) as $dim |
    [.values | {m, n, warps, vec, stages} | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] | [combinations] | .[] |
    "--kernel \($k) --dim \($dim)" + add + " "' | { grep -vE -- "${opt[skip]:-^$}" || true; } | sed 's/ $//' | shuf --random-source=<(yes fa_bench) >"$work/all"
choose_points

arch=${opt[arch]}
if [[ -z $arch ]]; then
    arch=$("$bench" --device "${opt[device]}" --seq 16 --seeds 1 --check cpu --timing none --quiet --json - | jq -r '.ptxas.arch // empty')
    [[ -n $arch ]] || { echo "tile_grid.sh: NOT-RUN: no device, or no compiler" >&2; exit 4; }
fi

# What each kernel's file and its includes come to: the points of an edited kernel are run again.
sources=$(while read -r kernel; do
    "$bench" --kernel "$kernel" --arch "$arch" --compile-only --quiet --json - | jq -c --arg kernel "$kernel" '{($kernel): .provenance.source_sha256}'
done < <(awk '{print $2}' "$work/points" | sort -u) | jq -cs add)
if [[ ${flag[resume]} -eq 1 && -e $out.points.jsonl ]]; then
    jq -c --argjson now "$sources" --arg arch "$arch" --arg problem "${opt[problem]}" --arg default "$default_problem" \
        'select(.arch == $arch and .source_sha256 == $now[.kernel] and (.problem // $default) == $problem)' "$out.points.jsonl" >"$work/kept"
    cp "$work/kept" "$out.points.jsonl"
fi

export OMP_NUM_THREADS=1 # many runs at once
export arch sources problem=${opt[problem]}
export run_options="--arch $arch --device ${opt[device]} $problem --seeds 1 --timing none --timeout ${opt[timeout]}"
# shellcheck disable=SC2016 # jq's
export line='($point | capture("--kernel (?<kernel>[^ ]+) --dim (?<dim>[0-9]+)")) as $at |
    {point: $point, problem: $ENV.problem, kernel: $at.kernel, m: .config.m, dim: ($at.dim | tonumber), arch: $ENV.arch, ran: (if .device and .status != "infeasible" then (if .device.backend == "cuda" then .device.arch else .device.backend end) else null end), status, reason,
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes, config,
    code_sha256: .provenance.code_sha256, source_sha256: ($ENV.sources | fromjson)[$at.kernel], git: .provenance.git}'
run_points "$out.points.jsonl"

awk '{count[$2 " " $4]++} END {printf "{"; for (k in count) printf "%s\"%s\": %d", (n++ ? ", " : ""), k, count[k]; print "}"}' "$work/points" >"$work/counts"
jq -s --slurpfile all "$work/counts" 'group_by([.kernel, .dim]) | map({kernel: .[0].kernel, dim: .[0].dim, arch: .[0].arch, ran: (map(select(.status == "pass") | .ran) | group_by(.) | map({(.[0]): length}) | add // {}),
    git: (map(.git) | unique | join(" ")), of: ($all[0][.[0].kernel + " " + (.[0].dim | tostring)]), points: length, pass: map(select(.status == "pass")) | length, infeasible: map(select(.status == "infeasible")) | length,
    holes: map(select(.status != "pass" and (.status != "infeasible" or (.reason // "") == ""))) | length,
    m64_pass: map(select(.status == "pass" and .m == 64)) | length, spill: map(select(.status == "pass" and .spill_bytes > 0)) | length,
    reasons: (map(select(.status == "infeasible") | .reason | gsub("[0-9]+ bytes of"; "N bytes of")) | group_by(.) | map({reason: .[0], points: length}) | sort_by(-.points))})' \
    "$out.points.jsonl" >"$out"
jq -r '.[] | "\(.kernel) dim \(.dim) for \(.arch): \(.points) of \(.of) points, \(.pass) pass (\(.ran | to_entries | map("\(.value) on \(.key)") | join(", "))), \(.infeasible) infeasible, \(.holes) holes; M=64: \(.m64_pass) pass"' "$out"
jq -r 'select(.status != "pass" and (.status != "infeasible" or (.reason // "") == "")) | "HOLE \(.point): \(.status) \(.reason // "")"' "$out.points.jsonl" >"$work/holes"
cat "$work/holes"
[[ ! -s $work/holes ]]
