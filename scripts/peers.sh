#!/usr/bin/env bash
# fa_bench beside PyTorch's attention, one problem at a time; ratio per problem and geometric mean.
#
# usage: scripts/peers.sh [options]
#   --kernel NAME[,NAME...]    repeatable; the fastest counts (default: the last rung that serves the problem)
#   --problems FILE   a line of problem options each (default: scripts/lib/peers/h200.tsv)
#   --dtype TYPE      fp16 (default) or bf16: tensors of that type on both sides. A file holds rows of one type
#   --only TEXT       only problems whose "B,H,S,D,full|causal" contains TEXT
#   --peers LIST      backends of PyTorch's; fa3 and fa4, FlashAttention 3 and 4 by their own packages
#                     flash_attn_interface (or as --env has it) and flash-attn-4
#                     (default: flash,cudnn,fa3,efficient,math; without the last two it takes two thirds of the time)
#   --library FILE    another peer: a shared object (include/fa_library.h), or a library of the registry by its name,
#                     timed and paired by fa_bench itself; repeatable (default: built, which is fa2, fa3, cutlass_* and
#                     flashinfer_* of examples/library/build, those that are there; none adds none). A library that has
#                     a time stands for the peer of its name
#   --env DIR         peers that scripts/evidence/peers_env.sh brought: flash-attn-4, FlashAttention 3, cuDNN
#   --max-time SEC    sampling per kernel, per peer and per pair of them (default: 0.15)
#   --no-pairs        solo only: no peer is timed a second time against the kernel
#   --out FILE        default evidence/<gpu>/peers.json, of BF16 peers_bf16.json
#   --again           measure also what the file holds for this very machine code
#   --dry-run         print the problems, run nothing
# The file is rewritten after every problem, so a run that was stopped goes on where it was.
# solo: each timed alone, power-limited; paired: ABBA in one process (--cubin, scripts/lib/peers/peers_cubin.py).
# "ratio" is best peer's solo time / ours (above 1: ours is faster); "paired_ratio" is the least of the paired ratios.
# A kernel that is wrong in a pair is wrong.
# A row that says why a peer has no time, or no pair, is kept: use --again when that has changed.
# FA_BENCH names the binary (default ./fa_bench), PEERS_TORCH the peers' server (default: python3
# scripts/lib/peers/peers_torch.py). Exit: 0, 1 a kernel failed, 2 usage, 4 NOT-RUN (no GPU, no PyTorch).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([problems]=$lib/peers/h200.tsv [only]='' [dtype]=fp16 [peers]='flash,cudnn,fa3,efficient,math' [max-time]=0.15
    [env]='' [out]='')
flag=([no-pairs]=0 [again]=0 [dry-run]=0)
many=([kernel]='' [library]='')
parse_options "$@"
kernels=$(values_of kernel | paste -sd,) backends=${opt[peers]} only=${opt[only]} out=${opt[out]} dtype=${opt[dtype]}
max_time=${opt[max-time]}
pairs=$((1 - flag[no-pairs])) again=${flag[again]}
[[ $max_time =~ ^[0-9]*[.]?[0-9]+$ ]] || die 2 "--max-time takes seconds, not '$max_time'"
[[ $dtype =~ ^(fp16|bf16)$ ]] || die 2 "--dtype takes fp16 or bf16, not '$dtype'"
peer='(flash|cudnn|fa3|fa4|efficient|math)'
[[ $backends =~ ^$peer(,$peer)*$ ]] || die 2 "--peers takes flash, cudnn, fa3, fa4, efficient, math, not '$backends'"
libraries=() asked_peers=$backends
built() {
    find examples/library/build \( -name 'fa[23].so' -o -name 'cutlass_*.so' -o -name 'flashinfer_*.so' \) 2>/dev/null |
        sort
}
[[ -n ${many[library]} ]] || many[library]=built$'\n'
while read -r file; do
    case $file in
        none) ;;
        built) mapfile -t -O "${#libraries[@]}" libraries < <(built) ;;
        *) libraries+=("$file") ;;
    esac
done < <(values_of library)
for file in "${libraries[@]}"; do asked_peers+=,$(basename "$file" .so); done
is_input "${opt[problems]}" || die 2 "--problems takes a file that can be read, not '${opt[problems]}'"
of_problem='( *(--causal|--(batch|heads|kv-heads|seq|seq-kv|dim) +[1-9][0-9]*|--strides +[a-z]+))+ *'
problems=$(cut -f1 "${opt[problems]}")
bad=$(grep -anvE "^( *|#.*|$of_problem)\$" <<<"$problems" | head -n 1) || true
[[ -z $bad ]] || die 2 "--problems takes lines of problem options, not line $bad"
need_jq
mapfile -t shapes < <(jqf peers/shapes -cnR --arg only "$only" --arg dtype "$dtype" <<<"$problems")
[[ ${#shapes[@]} -gt 0 ]] || die 2 "no problem of ${opt[problems]} contains '$only'"
use_peers "${opt[env]}"
need_bench

registry=$("$bench" --list-kernels --json -)
for file in "${libraries[@]}"; do
    kernel_exists "$file" library || is_input "$file" ||
        die 2 "--library takes a file that can be read, a library's name, built or none, not '$file'"
done
need_kernels "$(values_of kernel)"
ladder=("${names[@]}")
[[ ${#ladder[@]} -gt 0 ]] || mapfile -t ladder < <(rungs | tac)
if [[ ${flag[dry-run]} -eq 1 ]]; then
    printf '%s\n' "${shapes[@]}" | jqf peers/shape_text -r --arg kernel "${kernels:-last rung that serves it}"
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
gpu_probe "$bench" --kernel "${ladder[-1]}" >"$work/probe.json"
[[ -s $work/probe.json ]] || die 4 "NOT-RUN: $bench wrote no record"
gpu=$(jq -r '.device.name // empty' "$work/probe.json")
[[ -n $gpu && $(jq -r .status "$work/probe.json") != not_run ]] || die 4 "NOT-RUN: $(jq -r .reason "$work/probe.json")"
[[ $dtype == fp16 ]] && name=peers.json || name=peers_$dtype.json
out=${out:-evidence/$(gpu_folder "$gpu")/$name}
need_clean "$out"
: >"$work/rows"
# The table so far; the file is first written with the first row.
[[ ! -s $out ]] || read_json peer "$out" >"$work/rows"
jq -s . "$work/rows" >"$work/table"
jq -e --arg dtype "$dtype" 'all(.[]; (.dtype // "fp16") == $dtype)' "$work/table" >/dev/null ||
    die 2 "$out holds rows of another --dtype: --out takes one file per type"

read -ra server_command <<<"${PEERS_TORCH:-python3 scripts/lib/peers/peers_torch.py}"
server_command=("${with_peers[@]}" "${server_command[@]}")
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

# The row in the file is of this very machine code and question, and has an answer of every peer asked and their pairs.
is_known() { # SHAPE
    local row kernel
    [[ $again -eq 0 ]] || return 1
    row=$(jqf peers/known -c --argjson shape "$1" --arg asked "$kernels" --argjson pairs "$pairs" \
        --arg backends "$asked_peers" "$work/table")
    [[ -n $row ]] || return 1
    kernel=$(jq -r .kernel <<<"$row")
    run_kernel "$kernel" --compile-only
    jq -e --argjson row "$row" '.provenance.code_sha256 == $row.code_sha256 and .config == $row.config' \
        "$work/$kernel.json" >/dev/null
}

# The kernel's record: the fastest of the list, or the last rung that serves the shape.
measure() {
    local name candidates=() keep
    for name in "${ladder[@]}"; do
        keep=()
        [[ $pairs -eq 0 ]] || ! kernel_exists "$name" hand || keep=(--cubin "$work/$name.cubin")
        run_kernel "$name" "${keep[@]}" --seeds 1 --check cpu --timing graph --warmup-ms 200 --max-time "$max_time"
        candidates+=("$work/$name.json")
        [[ -n $kernels ]] || jq -e '.status | IN("infeasible", "not_run")' "$work/$name.json" >/dev/null || break
    done
    jqf peers/best -sc "${candidates[@]}"
}

# The libraries as peers, each alone and, beside a kernel that passed, in one process with it.
library_peers() { # KERNEL, or empty
    local file alone beside pair how=(--device cuda "${problem[@]}" --seeds 1 --check cpu --timing graph --warmup-ms 200
        --max-time "$max_time" --quiet)
    for file in "${libraries[@]}"; do
        rm -f "$work/library.json" "$work/pair.json"
        alone=(--library "$file") beside=(--vs "library:$file")
        ! kernel_exists "$file" library || alone=(--kernel "$file") beside=(--vs "$file")
        "$bench" "${alone[@]}" "${how[@]}" --json "$work/library.json" 2>/dev/null || true
        [[ -s $work/library.json ]] || die 6 "$bench wrote no record for $file"
        if [[ $pairs -eq 1 && -n $1 && $(jq -r .status "$work/library.json") == pass ]]; then
            "$bench" --kernel "$1" "${beside[@]}" "${how[@]}" --json "$work/pair.json" 2>/dev/null || true
        fi
        pair=$(cat "$work/pair.json" 2>/dev/null || echo null)
        jqf peers/library -c --arg name "$(basename "$file" .so)" --argjson pairs "$pairs" --argjson pair "$pair" \
            "$work/library.json"
    done
}

failed=0
for shape in "${shapes[@]}"; do
    read -ra problem < <(jqf peers/options -r <<<"$shape")
    if is_known "$shape"; then
        continue
    fi
    started=$EPOCHREALTIME
    record=$(measure)
    between=$EPOCHREALTIME
    cubin=$work/$(jq -r .kernel <<<"$record").cubin question=$shape
    [[ ! -s $cubin || $(jq -r .status <<<"$record") != pass ]] ||
        question=$(jq -c --arg cubin "$cubin" '.cubin = $cubin' <<<"$shape")
    if ! peers=$(ask_peers "$question"); then
        [[ ! -s $work/server.err ]] || tail -n 3 "$work/server.err" >&2
        die 4 "NOT-RUN: the peers gave no answer"
    fi
    one_cudnn "$server"
    if [[ ${#libraries[@]} -gt 0 ]]; then
        library_peers "$(jq -r 'select(.status == "pass") | .kernel' <<<"$record")" >"$work/libraries"
        peers=$(jqf peers/with_libraries -c --slurpfile more "$work/libraries" <<<"$peers")
    fi
    wall=$(awk -v a="$started" -v b="$between" -v c="$EPOCHREALTIME" 'BEGIN {printf "[%.2f, %.2f]", b - a, c - b}')
    row=$(jqf peers/row -nc --argjson wall "$wall" --argjson shape "$shape" --argjson record "$record" \
        --argjson peers "$peers" --arg asked "$kernels" --argjson pairs "$pairs")
    jqf peers/with_row --argjson row "$row" "$work/table" >"$work/out"
    mv "$work/out" "$work/table"
    replace_file "$out" <"$work/table"
    jqf peers/row_text -r <<<"$row"
    [[ $(jq -r .status <<<"$row") == pass ]] || failed=1
done

printf '%s\n' "${shapes[@]}" | jq -sc . >"$work/shapes"
jqf peers/means_text -r --argjson pairs "$pairs" --slurpfile shapes "$work/shapes" "$work/table"
exit "$failed"
