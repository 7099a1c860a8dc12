#!/usr/bin/env bash
# Makes the committed evidence of this GPU from the bench's own tools.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evidence.sh PART... [--out DIR] [--budget N] [--minutes M] [--dry-run]
Parts, or all:
  gate       every kernel over the problem matrix of correctness (scripts/ci_gate.sh)
  sanitize   compute-sanitizer over every kernel (scripts/ci_gate.sh --sanitize), going on from <gpu>/sanitize.cases.jsonl.gz
  parity     every kernel beside PyTorch on the same inputs, both ways (scripts/parity.sh)
  sweep      the tile spaces of the rungs up to WMMA on the canonical problem: leaderboard, variants per second
             (at most --budget N candidates, default 150, and --minutes M, default 2, each; an interrupted sweep goes on)
  grid       every point of the WMMA tile grids passes or is infeasible, for this GPU's arch and for sm_89, run as PTX on a newer GPU
             (scripts/tile_grid.sh; goes on from the points in <gpu>/)
  ladder     every rung against the one below it, and the libraries, on three problems
  versus     the last rung against the fused library in one process over the peers' shapes, and the default kernel for three dims
  profile    Nsight Compute's gates of the sweeps' winners, and of the other rungs at the tiles of their rules, also at long sequences
             of three dims (scripts/ncu_profile.sh)
  peers      beside PyTorch's attention, shape by shape (scripts/peers.sh)
  robustness ways to fool the bench and faults, on the GPU (scripts/cheats.sh, scripts/faults.sh), into robustness/ beside <gpu>/
Writes to evidence/<gpu>/ (default) or DIR, as it goes: what a part had finished when it was cut off is there.
Needs a GPU: exit 4 without one; 1 when a part failed. FA_BENCH names the binary (default ./fa_bench); LADDER_OPTIONS and
GRID_OPTIONS go to scripts/ladder.sh and scripts/tile_grid.sh, GATE_OPTIONS to scripts/ci_gate.sh.
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/gpu.sh
. scripts/gpu.sh
bench=${FA_BENCH:-./fa_bench}
all=(gate sanitize parity sweep grid ladder versus profile peers robustness)
parts=() out='' dry_run=0 budget=150 minutes=2
while [[ $# -gt 0 ]]; do
    case $1 in
        --out) [[ $# -ge 2 ]] || { echo "evidence.sh: --out needs a folder" >&2; exit 2; }; out=$2; shift ;;
        --budget) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "evidence.sh: --budget takes a whole number from 1" >&2; exit 2; }; budget=$2; shift ;;
        --minutes) [[ ${2:-} =~ ^[0-9]+([.][0-9]+)?$ ]] || { echo "evidence.sh: --minutes takes a number" >&2; exit 2; }; minutes=$2; shift ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        all) parts+=("${all[@]}") ;;
        *)
            [[ " ${all[*]} " == *" $1 "* ]] || { echo "evidence.sh: unknown argument $1 (see --help)" >&2; exit 2; }
            parts+=("$1")
            ;;
    esac
    shift
done
[[ ${#parts[@]} -gt 0 ]] || { usage >&2; exit 2; }
[[ -x $bench ]] || { echo "evidence.sh: NOT-RUN: no $bench: run make" >&2; exit 4; }
gpu=''
[[ $dry_run -eq 1 ]] || gpu=$(gpu_name "$bench")
[[ -n $gpu || $dry_run -eq 1 ]] || { echo "evidence.sh: NOT-RUN: no GPU here" >&2; exit 4; }
given=$out robustness=${out:-evidence}/robustness
out=${out:-evidence/$(gpu_folder "${gpu:-gpu}")}
[[ $dry_run -eq 1 ]] || mkdir -p "$out"

# Each of several parts is a run of its own, so that one that fails takes no other with it.
if [[ ${#parts[@]} -gt 1 ]]; then
    options=(--budget "$budget" --minutes "$minutes")
    [[ -z $given ]] || options+=(--out "$given")
    [[ $dry_run -eq 0 ]] || options+=(--dry-run)
    failed=()
    for part in "${parts[@]}"; do
        scripts/evidence.sh "$part" "${options[@]}" || failed+=("$part")
    done
    [[ ${#failed[@]} -eq 0 ]] || { echo "evidence.sh: failed: ${failed[*]}" >&2; exit 1; }
    exit 0
fi

# The hand-written kernels, in the order of the registry.
registry=$("$bench" --list-kernels --json -)
mapfile -t rungs < <(jq -r '.[] | select(.variant_of == null and .kind == "hand") | .name' <<<"$registry")
baseline=${rungs[0]}

# The tile that the ladder found best for a kernel on a problem, "m=64,n=128,..."; nothing where there was none.
best_tile() { # KERNEL B H S D
    jq -r --arg k "$1" --arg p "$2,$3,$4,$5" '[.[] | select(.problem == $p and .kernel == $k and .tile)][0].config // empty |
        to_entries | map("\(.key)=\(.value)") | join(",")' "$out/ladder.json" 2>/dev/null || true
}

part_ladder() {
    local options=()
    read -ra options <<<"--out $out ${LADDER_OPTIONS:-}"
    [[ $dry_run -eq 0 ]] || options+=(--dry-run)
    echo "ladder.sh ${options[*]}"
    scripts/ladder.sh "${options[@]}" || true # a step that failed is not in the table
    [[ ! -s $out/ladder.json || $dry_run -eq 1 ]] || gate_baseline
}

# What scripts/ci_gate.sh holds the rungs to: the ratio over the lowest rung, the product of the ladder's steps up to there.
gate_baseline() {
    local kernel tiles
    tiles=$(for kernel in "${rungs[@]}"; do jq -n --arg k "$kernel" --arg t "$(best_tile "$kernel" 2 8 512 64)" '{($k): $t}'; done | jq -sc add)
    jq --argjson tiles "$tiles" --args 'def options: if . == "" then "" else split(",") | map(" --" + sub("="; " ")) | add end;
        $ARGS.positional[0] as $base | map(select(.problem == "2,8,512,64")) as $rows |
        ([$rows[] | select(.kernel == $base)][0]) as $low |
        reduce $ARGS.positional[1:][] as $kernel ({over: {($base): 1}, rows: []}; ([$rows[] | select(.kernel == $kernel and .ratio != null)][0]) as $row |
            if $row and .over[$row.vs] then .over[$kernel] = .over[$row.vs] * $row.ratio |
                .rows += [{kernel: $kernel, vs: ($base + (if $tiles[$base] == "" then "" else ":" + $tiles[$base] end)),
                    args: ("--timing graph" + ($tiles[$kernel] | options)), ratio: .over[$kernel],
                    problem: $row.problem, variant: $row.variant, arch: $row.arch, config: $row.config, code_sha256: $row.code_sha256,
                    vs_config: $low.config, vs_code_sha256: $low.code_sha256, git: $row.git}] else . end) | .rows' \
        "${rungs[@]}" <"$out/ladder.json" >"$out/gate_baseline.json"
}

# The gate writes into the evidence itself, so that a run that was cut off leaves its cases; the records go at the end.
gate_run() { # NAME OPTIONS...
    local name=$1 command
    shift
    local more=()
    read -ra more <<<"${GATE_OPTIONS:-}"
    command=(scripts/ci_gate.sh "$@" "${more[@]}" --out "$out/$name.run")
    echo "${command[*]}"
    [[ $dry_run -eq 1 ]] && return
    "${command[@]}" || true # a failure stands in the summary
    cp "$out/$name.run/summary.json" "$out/$name.json"
    # What passed has said nothing worth keeping.
    jq -c 'if .verdict == "passed" then del(.text) else . end' "$out/$name.run/cases.jsonl" | gzip -9n >"$out/$name.cases.jsonl.gz"
    [[ ! -e $out/$name.run/conform.json ]] || cp "$out/$name.run/conform.json" "$out/conform.json"
    rm -rf "$out/$name.run"
}

part_sanitize() {
    local options=(--sanitize --jobs 10)
    [[ ! -e $out/sanitize.cases.jsonl.gz ]] || options+=(--resume "$out/sanitize.cases.jsonl.gz")
    gate_run sanitize "${options[@]}"
}

part_gate() {
    gate_run gate --jobs 12
}

part_parity() {
    echo "parity.sh"
    [[ $dry_run -eq 1 ]] || scripts/parity.sh --out "$out/parity.json"
}

part_sweep() {
    local kernel
    for kernel in $(kernels_of none wmma); do
        [[ $kernel == "$baseline" ]] && continue
        echo "evo_sweep.sh --kernel $kernel"
        [[ $dry_run -eq 1 ]] && continue
        scripts/evo_sweep.sh --kernel "$kernel" --strategy evo --budget "$budget" --minutes "$minutes" --out "$out" || echo "evidence.sh: the sweep of $kernel failed"
    done
    [[ ! -s $out/leaderboard.jsonl ]] || gzip -9fn "$out/leaderboard.jsonl"
}

# The winner of each swept kernel, and the rungs that no sweep has been over; on the canonical problem and on one that fills the device.
part_profile() {
    local kernel knobs tile problem problems options board
    board=$(jq -r '[.[] | select(.group | endswith("|2,8,8,512,512,64,full|fp32"))][0].kernels // {} | to_entries[] | [.key, .value.knobs] | @tsv' "$out/leaderboard.json" 2>/dev/null || true)
    while IFS=$'\t' read -r kernel knobs; do
        tile=$(sed -E 's/(^|,)([a-z]+)=/ --\2 /g' <<<"$knobs")
        problems=("" "--batch 4 --heads 16 --seq 1024")
        [[ -n $knobs ]] || problems+=("--batch 8 --heads 32 --seq 2048" "--batch 8 --heads 16 --seq 2048 --dim 128" "--batch 8 --heads 8 --seq 2048 --dim 256")
        for problem in "${problems[@]}"; do
            read -ra options <<<"--kernel $kernel $tile $problem"
            echo "ncu_profile.sh ${options[*]}"
            [[ $dry_run -eq 1 ]] && continue
            scripts/ncu_profile.sh --out "$out/ncu" "${options[@]}" || true # a gate that fails stands in the table
            rm -f "$out"/ncu/*.ncu-rep "$out"/ncu/*.csv
        done
    done < <(
        [[ -z $board ]] || echo "$board"
        for kernel in "${rungs[@]}"; do
            [[ $kernel == "$baseline" ]] || cut -f1 <<<"$board" | grep -qx "$kernel" || printf '%s\t\n' "$kernel"
        done
    )
}

# --vs the fused library, in one process: a record a line, as each ends, and what they come to.
part_versus() {
    local base other list dim mask options
    base=$(jq -r '.[] | select(.default).name' <<<"$registry")
    other=$(jq -r '[.[] | select(.kind == "library").name] | last' <<<"$registry")
    list=$(for dim in 64 128 256; do for mask in '' --causal; do echo "--kernel $base --batch 4 --heads 16 --seq 1024 --dim $dim $mask"; done; done
        jq -r --arg k "${rungs[-1]}" '.shapes[] | "--kernel \($k) --batch \(.batch) --heads \(.heads) --seq \(.seq) --dim \(.dim)\(if .causal then " --causal" else "" end)"' scripts/peers_grid.json)
    options=(--vs "$other" --seeds 1 --check cublas --timing graph --warmup-ms 200 --max-time 0.2)
    echo "fa_bench --runs - ${options[*]} # $(wc -l <<<"$list") of them"
    [[ $dry_run -eq 0 ]] || return 0
    trap 'summarise_versus; gzip -9fn "$out/versus.jsonl"' EXIT # also when it is cut off
    "$bench" --runs - "${options[@]}" --quiet --json "$out/versus.jsonl" <<<"$list" >/dev/null || true # those that fail are said below
}

# fa3_scaled: FlashAttention 3's time in the table of the peers' grid x the library's here / the library's there.
summarise_versus() {
    # shellcheck disable=SC2016 # jq's
    jq -nR --slurpfile grid scripts/peers_grid.json '
        def name(seq): "\(.batch),\(.heads),\(seq),\(.dim)\(if .causal then " causal" else "" end)";
        ($grid[0].shapes | map({(name(.seq)): .table}) | add) as $table |
        [inputs | fromjson? | (.problem | name(.seq_q)) as $problem | {problem: $problem,
            kernel, variant, arch: .ptxas.arch, config, status, reason, p50_us: .vs.p50_us, vs: .vs.kernel, vs_compiler: .vs.compiler, vs_p50_us: .vs.other_p50_us, ratio: .vs.ratio, ci95: .vs.ratio_ci95,
            fa3_scaled: (if .vs.other_p50_us and $table[$problem].fa3 and $table[$problem].cudnn then $table[$problem].fa3 * .vs.other_p50_us / $table[$problem].cudnn else null end),
            sm_clock_mhz: .timing.sm_clock_mhz.p50, git: .provenance.git,
            code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256}]' "$out/versus.jsonl" >"$out/versus.json"
    jq -r '.[] | select(.status != "pass") | "evidence.sh: \(.kernel), \(.problem): \(.status) \(.reason // "")"' "$out/versus.json"
}

part_robustness() {
    echo "cheats.sh and faults.sh on cuda"
    [[ $dry_run -eq 1 ]] && return
    mkdir -p "$robustness"
    local code=0
    scripts/cheats.sh --device cuda --json "$robustness/cheats_cuda.json" || code=$?
    scripts/faults.sh --only gpu --json "$robustness/faults_cuda.json" || code=$?
    return "$code"
}

part_peers() {
    echo "peers.sh"
    [[ $dry_run -eq 1 ]] || scripts/peers.sh --out "$out/peers.json"
}

part_grid() {
    local arch file options
    for arch in "" sm_89; do
        file=$out/tile_grid${arch:+_$arch}.json
        read -ra options <<<"--out $file --resume ${arch:+--arch $arch} ${GRID_OPTIONS:-}"
        echo "tile_grid.sh ${options[*]}"
        [[ $dry_run -eq 1 ]] && continue
        [[ ! -e $file.points.jsonl.gz ]] || gunzip -f "$file.points.jsonl.gz"
        scripts/tile_grid.sh "${options[@]}" || true # a hole stands in the table
        gzip -9fn "$file.points.jsonl"
    done
}

# Names of the hand kernels whose tensor-core class is one of the words.
kernels_of() {
    jq -r --args '.[] | select(.kind == "hand" and (.tensor_cores as $t | $ARGS.positional | index($t))) | .name' "$@" <<<"$registry"
}

"part_${parts[0]}"
