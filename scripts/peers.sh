#!/usr/bin/env bash
# fa_bench beside PyTorch's attention over a grid of shapes, one shape at a time; ratio per shape and geometric mean.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/peers.sh [options]
  --kernel LIST     kernels, comma-separated; the fastest counts (default: the last rung of the ladder that serves the shape)
  --grid FILE       shapes and a table of times (default: scripts/peers_grid.json)
  --only TEXT       only shapes whose "B,H,S,D,full|causal" contains TEXT
  --peers LIST      backends of PyTorch's, and fa3, FlashAttention 3 by its own package flash_attn_interface
                    (default: flash,cudnn,fa3,efficient,math; without the last two a grid takes two thirds of the time)
  --max-time SEC    sampling per kernel, per peer and per pair of them (default: 0.15)
  --no-pairs        each alone, no peer a second time against the kernel
  --out FILE        default evidence/<gpu>/peers.json
  --again           measure also what the file holds for this very machine code
  --dry-run         print the shapes, run nothing
The file is rewritten after every shape, so a run that was stopped goes on where it was. ratio = best peer's time / ours (above 1: ours is
faster). Where fa3 has no time, FlashAttention 3 is its time in the table x cuDNN now / cuDNN in the table ("fa3_scaled"); where it has one,
fa3_scaled stands in the row and does not count. Those times are each one's alone, at the clock its own power leaves it; "paired" are the ratios
of peer and kernel in one process, A B B A, "paired_ratio" the least of them (fa_bench --cubin, scripts/peers_cubin.py); a kernel that is wrong
there is wrong. A row that says why a peer has no time, or no pair, is kept: --again when that has changed.
FA_BENCH names the binary (default ./fa_bench), PEERS_TORCH the peers' server (default: python3 scripts/peers_torch.py).
Exit: 0, 1 a kernel failed, 2 usage, 4 NOT-RUN (no GPU, no PyTorch).
USAGE
}

die() { # CODE TEXT
    echo "peers.sh: $2" >&2
    exit "$1"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/gpu.sh
. scripts/gpu.sh
bench=${FA_BENCH:-./fa_bench}
kernels='' backends=flash,cudnn,fa3,efficient,math grid=scripts/peers_grid.json only='' max_time=0.15 out='' pairs=1 again=0 dry_run=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --kernel | --peers | --grid | --only | --max-time | --out)
            [[ $# -ge 2 ]] || die 2 "$1 needs a value"
            case $1 in --kernel) kernels=$2 ;; --peers) backends=$2 ;; --grid) grid=$2 ;; --only) only=$2 ;; --max-time) max_time=$2 ;; --out) out=$2 ;; esac
            shift
            ;;
        --no-pairs) pairs=0 ;;
        --again) again=1 ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        *) die 2 "unknown option $1 (see --help)" ;;
    esac
    shift
done
[[ $max_time =~ ^[0-9]*[.]?[0-9]+$ ]] || die 2 "--max-time takes seconds, not '$max_time'"
[[ $backends =~ ^(flash|cudnn|fa3|efficient|math)(,(flash|cudnn|fa3|efficient|math))*$ ]] || die 2 "--peers takes flash, cudnn, fa3, efficient, math, not '$backends'"
command -v jq >/dev/null || die 4 "NOT-RUN: no jq: run scripts/setup.sh"
jq -e '.shapes | length > 0 and all(.[]; has("batch") and has("heads") and has("seq") and has("dim") and has("causal"))' "$grid" >/dev/null 2>&1 ||
    die 2 "--grid takes a file with shapes, not '$grid'"
mapfile -t shapes < <(jq -c --arg only "$only" '.shapes[] | select("\(.batch),\(.heads),\(.seq),\(.dim),\(if .causal then "causal" else "full" end)" | contains($only))' "$grid")
[[ ${#shapes[@]} -gt 0 ]] || die 2 "no shape of $grid contains '$only'"
[[ -x $bench ]] || die 4 "NOT-RUN: no $bench: run make"

registry=$("$bench" --list-kernels --json -)
if [[ -n $kernels ]]; then
    IFS=, read -ra ladder <<<"$kernels"
    for name in "${ladder[@]}"; do
        jq -e --arg k "$name" 'any(.[]; .name == $k)' <<<"$registry" >/dev/null || die 2 "no kernel '$name' (fa_bench --list-kernels)"
    done
else
    mapfile -t ladder < <(jq -r '[.[] | select(.kind == "hand" and .variant_of == null) | .name] | reverse | .[]' <<<"$registry")
fi
if [[ $dry_run -eq 1 ]]; then
    printf '%s\n' "${shapes[@]}" | jq -r --arg k "${kernels:-last rung that serves it}" '"\(.batch),\(.heads),\(.seq),\(.dim)\(if .causal then " causal" else "" end): \($k), peers"'
    exit 0
fi

work=$(mktemp -d)
server=
# shellcheck disable=SC2317 # by the trap
finish() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# Is there a GPU, and which? Asked of a record, on the ladder's first and simplest rung.
"$bench" --kernel "${ladder[-1]}" --device cuda --batch 1 --heads 1 --seq 16 --dim 64 --timing none --seeds 1 --check cpu --quiet --json "$work/probe.json" 2>/dev/null || true
[[ -s $work/probe.json ]] || die 4 "NOT-RUN: $bench wrote no record"
gpu=$(jq -r '.device.name // empty' "$work/probe.json")
[[ -n $gpu && $(jq -r .status "$work/probe.json") != not_run ]] || die 4 "NOT-RUN: $(jq -r .reason "$work/probe.json")"
out=${out:-evidence/$(gpu_folder "$gpu")/peers.json}
mkdir -p "$(dirname "$out")"
if [[ -e $out ]] && ! jq -e 'type == "array"' "$out" >/dev/null 2>&1; then
    mv "$out" "$out.corrupt"
    echo "peers.sh: $out is no table: set aside as $out.corrupt" >&2
fi
[[ -e $out ]] || echo '[]' >"$out"

read -ra server_command <<<"${PEERS_TORCH:-python3 scripts/peers_torch.py}"
coproc TORCH { exec "${server_command[@]}" --serve --backends "$backends" --max-time "$max_time" 2>"$work/server.err"; }
server=$TORCH_PID
exec {ask}>&"${TORCH[1]}" {answer}<&"${TORCH[0]}"

ask_peers() { # SHAPE -> one array of records on stdout
    local reply
    { printf '%s\n' "$1" >&"$ask"; } 2>/dev/null || return 1
    IFS= read -r -t 300 -u "$answer" reply || return 1
    printf '%s\n' "$reply"
}

run_kernel() { # NAME OPTIONS...: the record in $work/NAME.json
    local name=$1
    shift
    rm -f "$work/$name.json" "$work/$name.cubin"
    "$bench" --kernel "$name" --device cuda "${problem[@]}" "$@" --quiet --json "$work/$name.json" 2>/dev/null || true
    [[ -s $work/$name.json ]] || die 6 "$bench wrote no record for $name"
}

# The row in the file is of this very machine code and question, and has an answer of every peer that is asked, and their pairs.
is_known() { # SHAPE
    local row kernel
    [[ $again -eq 0 ]] || return 1
    row=$(jq -c --argjson s "$1" --arg asked "$kernels" --argjson pairs "$pairs" --arg backends "$backends" '({flash: "fa2"} as $names | $backends | split(",") | map($names[.] // .)) as $wanted | map(select(.batch == $s.batch and .heads == $s.heads and .seq == $s.seq and .dim == $s.dim and
        .causal == $s.causal and .asked == $asked and .status == "pass" and ($pairs == 0 or has("paired")) and (.peers | length) > 0 and ((.peers + (.absent // {})) as $answered | all($wanted[]; . as $w | $answered | has($w)))))[0] // empty' "$out")
    [[ -n $row ]] || return 1
    kernel=$(jq -r .kernel <<<"$row")
    run_kernel "$kernel" --compile-only
    jq -e --argjson row "$row" '.provenance.code_sha256 == $row.code_sha256 and .config == $row.config' "$work/$kernel.json" >/dev/null
}

# The kernel's record: the fastest of the list, or the last rung that serves the shape.
measure() {
    local name candidates=() keep
    for name in "${ladder[@]}"; do
        keep=()
        [[ $pairs -eq 0 ]] || ! jq -e --arg k "$name" 'any(.[]; .name == $k and .kind == "hand")' <<<"$registry" >/dev/null || keep=(--cubin "$work/$name.cubin")
        run_kernel "$name" "${keep[@]}" --seeds 1 --check cpu --timing graph --warmup-ms 200 --max-time "$max_time"
        candidates+=("$work/$name.json")
        [[ -n $kernels ]] || jq -e '.status == "infeasible" or .status == "not_run"' "$work/$name.json" >/dev/null || break
    done
    jq -sc 'map(select(.status == "pass" and .timing.p50_us != null)) as $good | map(select(.status != "infeasible" and .status != "not_run" and .status != "pass")) as $bad |
        if $bad != [] then $bad[0] elif $good != [] then $good | min_by(.timing.p50_us) else .[0] end' "${candidates[@]}"
}

failed=0
for shape in "${shapes[@]}"; do
    # shellcheck disable=SC2207
    problem=($(jq -r '"--batch \(.batch) --heads \(.heads) --seq \(.seq) --dim \(.dim)\(if .causal then " --causal" else "" end)"' <<<"$shape"))
    if is_known "$shape"; then
        continue
    fi
    started=$EPOCHREALTIME
    record=$(measure)
    between=$EPOCHREALTIME
    cubin=$work/$(jq -r .kernel <<<"$record").cubin question=$shape
    [[ ! -s $cubin || $(jq -r .status <<<"$record") != pass ]] || question=$(jq -c --arg cubin "$cubin" '.cubin = $cubin' <<<"$shape")
    if ! peers=$(ask_peers "$question"); then
        [[ ! -s $work/server.err ]] || tail -n 3 "$work/server.err" >&2
        die 4 "NOT-RUN: the peers gave no answer"
    fi
    wall=$(awk -v a="$started" -v b="$between" -v c="$EPOCHREALTIME" 'BEGIN {printf "[%.2f, %.2f]", b - a, c - b}')
    row=$(jq -nc --argjson wall "$wall" --argjson s "$shape" --argjson r "$record" --argjson p "$peers" --arg asked "$kernels" --argjson pairs "$pairs" '
        ([$p[].paired | select(.status == "wrong")][0]) as $wrong |
        (if $r.status == "pass" and $wrong then $r | .status = "wrong" | .reason = "paired: \($wrong.reason)" | .timing = null | .throughput = null else $r end) as $r |
        {torch_flash: "fa2", torch_cudnn: "cudnn", flash_attn_3: "fa3", torch_efficient: "efficient", torch_math: "math"} as $names |
        ([$p[] | select(.status == "pass" and .timing.p50_us != null) | {($names[.kernel] // .kernel): .timing.p50_us}] | add // {}) as $now |
        (if $now.cudnn and $s.table.fa3 and $s.table.cudnn then {fa3_scaled: ($s.table.fa3 * $now.cudnn / $s.table.cudnn)} else {} end) as $scaled |
        ($now + $scaled) as $us | (if $r.status == "pass" then $r.timing.p50_us else null end) as $ours |
        ([$p[] | select(.paired.status == "pass") | {($names[.kernel] // .kernel): (.paired | {ratio, ci95: .ratio_ci95, us: .p50_us, kernel_us: .kernel_p50_us})}] | add // {}) as $paired |
        ($us | if .fa3 then del(.fa3_scaled) else . end | to_entries | min_by(.value)) as $best |
        {batch: $s.batch, heads: $s.heads, seq: $s.seq, dim: $s.dim, causal: $s.causal, kernel: $r.kernel, variant: $r.variant, arch: $r.ptxas.arch, config: $r.config, us: $ours,
         peers: $us, best_peer: $best.key, ratio: (if $ours and $best then $best.value / $ours else null end), tflops: $r.throughput.tflops,
         status: $r.status, reason: $r.reason, method: $r.timing.method, sm_clock_mhz: $r.timing.sm_clock_mhz.p50, asked: $asked, wall_s: $wall,
         code_sha256: $r.provenance.code_sha256, source_sha256: $r.provenance.source_sha256, git: $r.provenance.git, driver: $r.provenance.driver, time: $r.provenance.time,
         torch: (([$p[] | select(.kernel == "flash_attn_3")] + $p)[0].provenance.compiler),
         absent: ([$p[] | select(.status != "pass") | {($names[.kernel] // .kernel): .reason}] | add // {})} +
        if $pairs == 0 then {} else {$paired, paired_ratio: (if $ours then [$paired[].ratio] | min else null end),
         unpaired: ([$p[] | select(.status == "pass" and .paired.status != "pass") | {($names[.kernel] // .kernel): (.paired.reason // "no cubin")}] | add // {})} end')
    jq --argjson row "$row" 'map(select([.batch, .heads, .seq, .dim, .causal] != ($row | [.batch, .heads, .seq, .dim, .causal]))) + [$row]' "$out" >"$work/out"
    cp "$work/out" "$out.tmp"
    mv "$out.tmp" "$out"
    jq -r 'def us: if . == null then "-" else . * 100 | round / 100 end;
        "\(.batch),\(.heads),\(.seq),\(.dim)\(if .causal then " causal" else "" end)  \(.variant // .kernel) \(.us | us) us  best peer \(.best_peer // "-") \(.peers[.best_peer // ""] | us) us  ratio \(.ratio | us)\(if .paired_ratio then ", paired \(.paired_ratio | us)" else "" end)" +
        (if .status == "pass" then .unpaired // {} else {} end | to_entries | if . == [] then "" else "  not paired: \(map(.key) | join(", ")): \(.[0].value)" end) +
        (if .status != "pass" then "  \(.status): \(.reason)" else "" end)' <<<"$row"
    [[ $(jq -r .status <<<"$row") == pass ]] || failed=1
done

jq -r --argjson pairs "$pairs" --argjson shapes "[$(IFS=,; echo "${shapes[*]}")]" '
    def key: [.batch, .heads, .seq, .dim, .causal];
    def mean: map(log) | add / length | exp | . * 1000 | round / 1000;
    ($shapes | map(key)) as $keys | map(select(key as $k | any($keys[]; . == $k))) | map(select(.ratio != null)) | if . == [] then "no ratio" else
        length as $all | map(.paired_ratio | values) as $paired | "geometric mean of best peer / ours over \($all) shapes: \(map(.ratio) | mean)" +
        if $pairs == 0 or $paired == [] then "" else " (each alone), \($paired | mean) (paired\(if ($paired | length) < $all then ", over \($paired | length)" else "" end))" end end' "$out"
exit "$failed"
