#!/usr/bin/env bash
# Makes the committed evidence of this GPU, and of robustness, from the project's own tools.
#
# usage: scripts/evidence/evidence.sh PART... [options]
# Parts that need a GPU, into evidence/<gpu>/; "all" is these with cheats and faults:
#   gate       every kernel over the problem matrix of correctness (scripts/ci_gate.sh)
#   sanitize   compute-sanitizer over every kernel (scripts/ci_gate.sh --sanitize; goes on from sanitize.cases.jsonl.gz)
#   parity     every kernel beside PyTorch on the same inputs, both ways (scripts/evidence/parity.sh)
#   sweep      every kernel over its own tile space, on the first problem of scripts/lib/evidence/sweeps.txt that the
#              rules give to it: leaderboard, variants per second (at most --budget candidates and --seconds each; an
#              interrupted sweep goes on, and what the board has of this commit is not swept again)
#   grid       every point of the WMMA tile grids passes or is infeasible, for this GPU's arch and for sm_89, run as PTX
#              on a newer GPU (scripts/house/compile_all.sh --run; goes on from the points in <gpu>/)
#   ladder     every rung against the one below it, and the libraries, on three problems (scripts/evidence/ladder.sh)
#   versus     the last rung against the fused library, and FlashAttention 3 where its library is built, in one process
#              over the peers' shapes, at both paces; the default kernel for three dims (scripts/evidence/pairs.sh)
#   serving    decode, chunked prefill and parts of a wave, a record each (scripts/lib/evidence/serving.txt)
#   l2         --l2-persist kv: its effect on every rung, warm and after a flush, on the canonical problem and where K
#              and V are half the L2
#   lse        the log-sum-exp over dims, masks, tails and grouped heads, and what it costs
#              (scripts/lib/evidence/lse.txt)
#   profile    Nsight Compute's gates of the sweeps' winners, and of the other rungs at the tiles of their rules, also
#              at long sequences of three dims (scripts/ncu_profile.sh)
#   peers      beside FlashAttention, cuDNN and PyTorch's attention, problem by problem (scripts/peers.sh)
# Parts on whatever device there is, into evidence/robustness/; "robustness" is all of these:
#   controls   kernels wrong in one way, on the emulator (tests/emu/controls.sh)
#   mutants    barriers and waits taken out of the kernels (tests/emu/mutants.sh; some minutes)
#   hopper     wgmma wrong in one way, on the emulator (tests/emu/hopper_mutants.sh; some minutes)
#   wrong      kernels with one fault each: what an ordinary run catches, and what the gate (tests/wrong)
#              (this and cheats go on where the file says that they were cut off)
#   judge      a token changed in the modules that judge: what the unit tests catch (tests/mutate.py; some minutes)
#   race       the emulator's problem matrix under its race detector (scripts/ci_gate.sh --race; some minutes)
#   race_controls  kernels with a race and kernels without, under that detector (tests/emu/race.sh; some minutes)
#   asan       the suites with the driver under ASan, UBSan and LeakSanitizer (tests/asan.sh; some minutes)
#   fuzz       the fuzzers, --fuzz-seconds each (tests/fuzz/run.sh)
#   cheats     ways to fool the bench (tests/cheats/run.sh)
#   faults     kills, damaged caches, full disks; with a GPU the faults on the GPU (tests/faults/run.sh)
# Options:
#   --out DIR            instead of evidence/<gpu>/; DIR/robustness instead of evidence/robustness/
#   --budget N           candidates of a sweep at most (default 150)
#   --seconds SEC        of a sweep at most (default 120)
#   --kills N            of the faults without a GPU (default 200)
#   --fuzz-seconds N     default 600
#   --sample N           of mutants and of hopper: N of each, drawn by the date (default 0: all)
#   --dry-run            print the commands, do nothing
# Several parts run one after the other, also after one that failed. A part that is cut off leaves what it had finished.
# What goes below evidence/ is of a commit: kernels, driver and scripts must be those of HEAD, and the build too.
# Exit: 0, 1 a part failed, 2 usage, 4 NOT-RUN (no fa_bench; no GPU for a part that needs one).
# FA_BENCH names the binary (default ./fa_bench). LADDER_OPTIONS, GRID_OPTIONS and GATE_OPTIONS are passed on to
# ladder.sh, compile_all.sh --run and ci_gate.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
on_gpu=(gate sanitize parity sweep grid ladder versus serving l2 lse profile peers)
robustness=(controls mutants hopper wrong judge race race_controls asan fuzz cheats faults)
opt=([out]='' [budget]=150 [seconds]=120 [kills]=200 [fuzz-seconds]=600 [sample]=0)
flag=([dry-run]=0)
arguments=words
parse_options "$@"
parts=()
for word in "${words[@]}"; do
    case $word in
        all) parts+=("${on_gpu[@]}" cheats faults) ;;
        robustness) parts+=("${robustness[@]}") ;;
        *)
            [[ " ${on_gpu[*]} ${robustness[*]} " == *" $word "* ]] || die 2 "unknown argument $word (see --help)"
            parts+=("$word")
            ;;
    esac
done
[[ ${#parts[@]} -gt 0 ]] || { usage >&2; exit 2; }
need_number 1 budget kills fuzz-seconds
need_number 0 sample
[[ ${opt[seconds]} =~ ^[0-9]+([.][0-9]+)?$ ]] || die 2 "--seconds takes a number, not '${opt[seconds]}'"
dry_run=${flag[dry-run]}
need_bench
[[ " ${words[*]} " != *" all "* || $dry_run -eq 1 || -n $(gpu_name "$bench") ]] || die 4 "NOT-RUN: no GPU here"

# Each of several parts is a run of its own, so that one that fails takes no other with it.
if [[ ${#parts[@]} -gt 1 ]]; then
    options=()
    for name in "${!opt[@]}"; do
        [[ -z ${opt[$name]} ]] || options+=("--$name" "${opt[$name]}")
    done
    [[ $dry_run -eq 0 ]] || options+=(--dry-run)
    failed=() exit_code=4
    for part in "${parts[@]}"; do
        code=0
        scripts/evidence/evidence.sh "$part" "${options[@]}" || code=$?
        [[ $code -eq 0 ]] || failed+=("$part")
        [[ $code -eq 0 || $code -eq 4 ]] || exit_code=1
    done
    [[ ${#failed[@]} -eq 0 ]] || die $exit_code "failed: ${failed[*]}"
    exit 0
fi

make_work
part=${parts[0]}
gpu=''
[[ $dry_run -eq 1 ]] || gpu=$(gpu_name "$bench")
if [[ " ${robustness[*]} " == *" $part "* ]]; then
    out=${opt[out]:-evidence}/robustness
else
    [[ -n $gpu || $dry_run -eq 1 ]] || die 4 "NOT-RUN: no GPU here"
    out=${opt[out]:-evidence/$(gpu_folder "${gpu:-gpu}")}
fi
if [[ $dry_run -eq 0 ]]; then
    need_clean "$out"
    mkdir -p "$out"
fi

# The hand-written kernels, in the order of the registry.
registry=$("$bench" --list-kernels --json -)
mapfile -t rungs < <(rungs)
baseline=${rungs[0]}

try() { # COMMAND...: said, and run unless --dry-run
    echo "$*"
    [[ $dry_run -eq 1 ]] || "$@"
}

part_ladder() {
    local options=()
    read -ra options <<<"--out $out/ladder.jsonl ${LADDER_OPTIONS:-}"
    [[ $dry_run -eq 0 ]] || options+=(--dry-run)
    echo "ladder.sh ${options[*]}"
    scripts/evidence/ladder.sh "${options[@]}" || true # a step that failed is not in the table
    [[ ! -s $out/ladder.jsonl || $dry_run -eq 1 ]] || gate_baseline
}

# What scripts/ci_gate.sh holds the rungs to: the ratio over the lowest rung, the product of the ladder's steps so far.
gate_baseline() {
    jqf ladder/table -s "$out/ladder.jsonl" |
        jqf ladder/gate_baseline --argjson rungs "$(printf '%s\n' "${rungs[@]}" | jq -Rnc '[inputs]')" >"$work/baseline"
    replace_file "$out/gate_baseline.json" <"$work/baseline"
}

# The gate writes into the evidence itself, so that a run that was cut off leaves its cases; the records go at the end.
gate_run() { # NAME OPTIONS...
    local name=$1 command more=()
    read -ra more <<<"${GATE_OPTIONS:-}"
    command=(scripts/ci_gate.sh "${@:2}" "${more[@]}" --out "$out/$name.run")
    echo "${command[*]}"
    [[ $dry_run -eq 1 ]] && return
    touch "$work/begun"
    "${command[@]}" || true # a failure stands in the summary
    cp "$out/$name.run/summary.json" "$out/$name.json"
    stamp "$out/$name.json"
    # The text of a case that passed is not worth keeping.
    jq -c 'if .verdict == "passed" then del(.text) else . end' "$out/$name.run/cases.jsonl" | gzip -9n >"$work/cases"
    replace_file "$out/$name.cases.jsonl.gz" <"$work/cases"
    [[ ! -e $out/$name.run/conform.json ]] || cp "$out/$name.run/conform.json" "$out/conform.json"
    [[ ! -e $out/conform.json ]] || stamp "$out/conform.json"
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

part_serving() {
    try "$bench" --runs scripts/lib/evidence/serving.txt --seeds 1 --quiet --json "$out/serving.jsonl"
}

part_lse() {
    local runs
    runs=$(awk '/^#/ {next} /--dim/ {print; next} {
        n = split("40 64 72 128 136 256", dim)
        for (i = 1; i <= n; i++) print $0, "--dim", dim[i] "\n" $0, "--dim", dim[i], "--causal"
    }' "$lib/evidence/lse.txt")
    try "$bench" --device cuda --runs - --seeds 1 --quiet --json "$out/lse.jsonl" <<<"$runs"
    [[ ! -s $out/lse.jsonl ]] || gzip -9fn "$out/lse.jsonl"
}

# Of 2 x 8 heads and 64 columns a key takes 4 KiB of K and V: half the L2 in bytes / 4096 keys.
part_l2() {
    local l2_bytes=62914560 kernel keys l2 persist list options
    options=(--seeds 1 --check cpu --no-bound --warmup-ms 100 --max-time 0.2)
    [[ $dry_run -eq 1 ]] || l2_bytes=$(gpu_probe "$bench" --kernel "$baseline" | jq .device.l2_bytes)
    list=$(for keys in 512 $((l2_bytes / 8192)); do
        for kernel in "${rungs[@]}"; do
            for l2 in warm cold; do
                for persist in none kv; do
                    echo "--kernel $kernel --seq-kv $keys --l2 $l2 --l2-persist $persist"
                done
            done
        done
    done)
    echo "fa_bench --runs - ${options[*]} # $(wc -l <<<"$list") of them, keys 512 and $((l2_bytes / 8192))"
    [[ $dry_run -eq 0 ]] || return 0
    trap 'gzip -9fn "$out/l2_persist.jsonl"; rm -rf "$work"' EXIT # also when it is cut off
    "$bench" --device cuda --runs - "${options[@]}" --quiet --json "$out/l2_persist.jsonl" <<<"$list" >/dev/null || true
    jqf evidence/l2_persist -rnR "$out/l2_persist.jsonl"
}

part_parity() {
    try scripts/evidence/parity.sh --out "$out/parity.json"
}

part_sweep() {
    local kernel problem facts git words
    facts=$([[ $dry_run -eq 1 ]] || gpu_probe "$bench" --kernel "$baseline")
    git=$(jq -r '.provenance.git // "none"' <<<"${facts:-null}")
    # Of each kernel that is no variant, on each problem: what serves it.
    grep -v '^#' "$lib/evidence/sweeps.txt" >"$work/problems"
    for kernel in "${rungs[@]}"; do sed "s/^/--kernel $kernel /" "$work/problems"; done >"$work/served.list"
    words=(--compile-only --no-bound)
    [[ -z $facts ]] || words+=(--arch "$(gpu_target "$(jq -r .device.arch <<<"$facts")")")
    "$bench" --runs "$work/served.list" "${words[@]}" --quiet --json "$work/served" >"$work/said" 2>&1 || true
    while IFS=$'\t' read -r kernel problem; do
        read -ra words <<<"$problem"
        if [[ -z $problem ]]; then
            echo "$kernel: no problem of scripts/lib/evidence/sweeps.txt compiles for it here: not swept"
        elif jq -e --arg kernel "$kernel" --arg git "$git" 'any(.[]; .kernels[$kernel].git == $git)' \
            "$out/leaderboard.json" >/dev/null 2>&1; then
            echo "$kernel: swept at $git"
        else
            try scripts/evo_sweep.sh --kernel "$kernel" --strategy evo --budget "${opt[budget]}" \
                --seconds "${opt[seconds]}" --out "$out" -- "${words[@]}" ||
                echo "evidence.sh: the sweep of $kernel failed"
        fi
    done < <(jqf evidence/swept -r --rawfile points "$work/served.list" --slurpfile records "$work/served" \
        <<<"$registry")
    [[ ! -s $out/leaderboard.jsonl ]] || gzip -9fn "$out/leaderboard.jsonl"
}

# The winner of each swept kernel, and the rungs without a sweep; the canonical problem, and one that fills the device.
part_profile() {
    local kernel knobs problem problems options board
    board=$(jqf evidence/winners -r "$out/leaderboard.json" 2>/dev/null || true)
    while IFS=$'\t' read -r kernel knobs; do
        problems=("" "--batch 4 --heads 16 --seq 1024")
        [[ -n $knobs ]] || problems+=("--batch 8 --heads 32 --seq 2048" "--batch 8 --heads 16 --seq 2048 --dim 128"
            "--batch 8 --heads 8 --seq 2048 --dim 256")
        for problem in "${problems[@]}"; do
            read -ra options <<<"--kernel $kernel $(knob_options "$knobs") $problem"
            try scripts/ncu_profile.sh --out "$out/ncu" "${options[@]}" || true # a gate that fails stands in the table
        done
    done < <(
        [[ -z $board ]] || echo "$board"
        for kernel in "${rungs[@]}"; do
            [[ $kernel == "$baseline" ]] || cut -f1 <<<"$board" | grep -qx "$kernel" || printf '%s\t\n' "$kernel"
        done
    )
    [[ -d $out/ncu && $dry_run -eq 0 ]] || return 0
    find "$out/ncu" -name '*.json' ! -name '*.record.json' -print0 | sort -z |
        xargs -0 cat | jq -c . >"$work/ncu"
    replace_file "$out/ncu.jsonl" <"$work/ncu"
    rm -rf "$out/ncu"
}

# Against the peers in one process: the last rung at both paces, and the default kernel for three dims.
part_versus() {
    local base dim mask
    base=$(jq -r '.[] | select(.default).name' <<<"$registry")
    [[ $dry_run -eq 1 ]] || rm -f "$out/versus.jsonl"
    trap '[[ ! -e $out/versus.jsonl ]] || gzip -9fn "$out/versus.jsonl"; rm -rf "$work"' EXIT # also when it is cut off
    # Runs that fail are said by the table.
    try scripts/evidence/pairs.sh --pace sustained,rested --out "$out/versus.jsonl" || true
    for dim in 64 128 256; do
        for mask in '' --causal; do echo "--batch 4 --heads 16 --seq 1024 --dim $dim $mask"; done
    done | try scripts/evidence/pairs.sh --kernel "$base" --problems /dev/stdin --out "$out/versus.jsonl" || true
}

part_peers() {
    try scripts/peers.sh --out "$out/dense.jsonl"
}

part_grid() {
    local arch file options
    for arch in "" sm_89; do
        file=$out/tile_grid${arch:+_$arch}.json
        read -ra options <<<"--out $file --run --resume ${arch:+--arch $arch} ${GRID_OPTIONS:-}"
        echo "compile_all.sh ${options[*]}"
        [[ $dry_run -eq 1 ]] && continue
        [[ ! -e $file.points.jsonl.gz ]] || gunzip -f "$file.points.jsonl.gz"
        scripts/house/compile_all.sh "${options[@]}" || true # a hole stands in the table
        gzip -9fn "$file.points.jsonl"
    done
}

# A summary that the table of robustness counts has the date and the commit it was made at.
stamp() { # FILE
    [[ $dry_run -eq 0 && $1 -nt $work/begun ]] || return 0
    jq --arg date "$(date +%F)" --arg git "$(git rev-parse --short HEAD 2>/dev/null || echo none)" \
        '.made = $ARGS.named' "$1" >"$work/stamped"
    replace_file "$1" <"$work/stamped"
}
summarise() { # FILE COMMAND...
    local code=0
    touch "$work/begun"
    try "${@:2}" --json "$1" || code=$?
    stamp "$1"
    return $code
}

sample=()
[[ ${opt[sample]} -eq 0 ]] || sample=(--sample "${opt[sample]}" --seed "$(date +%Y%m%d)")
part_controls() { summarise "$out/controls.json" tests/emu/controls.sh; }
part_mutants() { summarise "$out/mutants.json" tests/emu/mutants.sh "${sample[@]}"; }
part_hopper() { summarise "$out/hopper_mutants.json" tests/emu/hopper_mutants.sh "${sample[@]}"; }
part_race_controls() { summarise "$out/race_controls.json" tests/emu/race.sh; }
part_judge() { summarise "$out/judge_mutants.json" tests/mutate.py --seed "$(date +%Y%m%d)" --count 200; }
part_asan() { summarise "$out/asan.json" tests/asan.sh; }
part_fuzz() { summarise "$out/fuzz.json" tests/fuzz/run.sh --seconds "${opt[fuzz-seconds]}"; }

part_race() {
    local code=0
    touch "$work/begun"
    try scripts/ci_gate.sh --race --out build/race || code=$?
    [[ $dry_run -eq 1 ]] || cp build/race/summary.json "$out/race.json"
    stamp "$out/race.json"
    return $code
}

device=$([[ -n $gpu ]] && echo cuda || echo emu)
was_cut_off() { jq -e '.not_reached // [] | length > 0' "$1" >/dev/null 2>&1; } # FILE
part_wrong() {
    local options=() file=$out/wrong_$device.json
    ! was_cut_off "$file" || options+=(--resume "$file")
    [[ $device == emu ]] || options+=(--gpu --seconds 90)
    summarise "$file" tests/wrong/run.sh "${options[@]}"
}
part_cheats() {
    local options=() file=$out/cheats_$device.json
    ! was_cut_off "$file" || options+=(--resume "$file")
    summarise "$file" tests/cheats/run.sh "${options[@]}" --device "$device"
}
part_faults() {
    local options=(--kills "${opt[kills]}")
    [[ $device == emu ]] || options=(--only gpu)
    summarise "$out/faults_$device.json" tests/faults/run.sh "${options[@]}"
}

"part_$part"
