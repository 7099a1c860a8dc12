#!/usr/bin/env bash
# Compiles the tile space of the registry for several architectures, without a GPU: registers, shared memory, spills.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/compile_all.sh [options]
  --defaults       only each kernel's default tile, and those of its rules, at the dims given
  --kernel NAME    only this kernel (repeatable)
  --arch LIST      comma-separated (default sm_80,sm_89,sm_90a)
  --dims LIST      comma-separated head dimensions (default 64,128)
  --sample N       N points per kernel, drawn with a fixed seed, instead of all
  --out FILE       one JSON line per point (default build/compile_all.jsonl)
  --jobs N         at once (default: the cores)
  --dry-run        print how many points, compile nothing
Prints a table per kernel and architecture: points that compile, infeasible, failed, spilling, with warnings.
Exit: 0, 1 when a point neither compiles nor is infeasible in words, or a default spills or warns, 2 usage, 4 not run.
FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/points.sh
opt=([arch]='sm_80,sm_89,sm_90a' [dims]='64,128' [sample]=0 [out]=build/compile_all.jsonl [jobs]=$(nproc)) flag=([defaults]=0 [dry-run]=0)
parse_options "$@"
defaults=${flag[defaults]} out=${opt[out]}

# One line of options per point. A default is asked for without knobs, so that the rules decide.
"$bench" --list-kernels --json - | jq -r --argjson only "$only" --arg archs "${opt[arch]}" --arg dims "${opt[dims]}" --argjson defaults "$defaults" '
    .[] | select(.kind == "hand") | select(($only | length) == 0 or (.name as $n | $only | index($n))) | . as $k |
    ($archs | split(",")[]) as $arch |
    select((.arch_specific and ($arch | endswith("a") | not)) | not) | select(($arch | ltrimstr("sm_") | rtrimstr("a") | tonumber) >= .min_arch) |
    ($dims | split(",")[]) as $dim | ("", " --causal") as $causal |
    "--kernel \(.name) --arch \($arch) --dim \($dim)\($causal)" as $base |
    if $defaults == 1 then $base + " --seq 512", $base + " --seq 8192"
    elif $causal != "" then empty
    else [.values | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] | [combinations] | .[] | $base + add end' >"$work/all"
choose_points

export run_options='--compile-only'
# shellcheck disable=SC2016 # jq's
export line='($point | capture("--kernel (?<kernel>[^ ]+) --arch (?<arch>[^ ]+) --dim (?<dim>[0-9]+)")) as $at |
    {point: $point, kernel: $at.kernel, arch: (.ptxas.arch // $at.arch), status, reason, config, dim: ($at.dim | tonumber),
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: ((.ptxas.spill_store_bytes // 0) + (.ptxas.spill_load_bytes // 0)),
    warnings: (.ptxas.warnings // []), blocks_per_sm: .occupancy.blocks_per_sm, code_sha256: .provenance.code_sha256}'
run_points "$out"

jq -rs 'group_by([.kernel, .arch])[] | "\(.[0].kernel) \(.[0].arch): \(map(select(.status == "pass")) | length) compile, \(
    map(select(.status == "infeasible")) | length) infeasible, \(map(select(.status != "pass" and .status != "infeasible")) | length) failed, \(
    map(select(.status == "pass" and .spill_bytes > 0)) | length) spill, \(map(select(.warnings | length > 0)) | length) warn"' "$out"
jq -r --argjson defaults "$defaults" 'select((.status != "pass" and .status != "infeasible") or (.status == "infeasible" and (.reason // "") == "") or
    ($defaults == 1 and (.status != "pass" or .spill_bytes > 0 or (.warnings | length) > 0))) |
    "FAIL \(.point): \(.status) \(.reason // "") spills \(.spill_bytes) \(.warnings | join("; "))"' "$out" >"$work/bad"
cat "$work/bad"
[[ ! -s $work/bad ]]
