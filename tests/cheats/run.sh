#!/usr/bin/env bash
# Runs every known way to fool the bench (tests/cheats) on whatever device there is, and says which gate caught each.
#
# usage: tests/cheats/run.sh [--device emu|cuda] [--only NAME] [--json FILE] [--resume FILE] [--list] [--help]
#   --device    default: cuda where there is a GPU, else emu; what needs a GPU is NOT-RUN without one
#   --only      one cheat (repeatable)
#   --json      summary (default build/cheats.json), written after each cheat: what was not reached is NOT-RUN
#   --resume    such a summary, which may be that of --json: cheats that ran there, on this device and from the same
#               files of tests/cheats, are not run again
#   --list      the cheats, what each needs (any: emulator or GPU; gpu; none: no device) and which way to fool a bench
#               it tries
# One line per cheat: CAUGHT, MISSED or NOT-RUN, its name, the gate. FA_BENCH names the binary (default ./fa_bench).
# Exit: 0 none missed, 1 one missed, 2 usage, 4 the honest kernel does not pass here, 143 ended by SIGTERM.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/cheats/run.sh
opt=([device]='' [json]=build/cheats.json [resume]='')
flag=([list]=0)
many=([only]='')
parse_options "$@"
device=${opt[device]} json=${opt[json]}
mapfile -t only < <(values_of only)
[[ -z ${opt[resume]} ]] || is_input "${opt[resume]}" || die 2 "--resume takes a summary of --json, not '${opt[resume]}'"
need_bench
gpu=0
"$bench" --version | grep -q '^gpu 0 ' && gpu=1
[[ -n $device ]] || device=$([[ $gpu -eq 1 ]] && echo cuda || echo emu)
[[ $device =~ ^(emu|cuda)$ ]] || die 2 "--device takes emu or cuda, not '$device'"
make_work
: >"$work/lines"
cheats=tests/cheats
record=$work/r.json
small=(--m 32 --batch 1 --heads 2 --seq 33 --dim 16 --check cpu --timing none)
timed=(--m 32 --batch 1 --heads 4 --seq 256 --dim 64 --check cpu --seeds 2 --warmup-ms 50 --max-time 0.1)

# One run; $code, $record and $text are what it left.
bench() { # OPTIONS...
    code=0
    rm -f "$record"
    "$bench" --device "$device" "$@" --quiet --json "$record" >"$work/out" 2>&1 || code=$?
    text=$(cat "$work/out")
}
is() { jq -e "$1" "$record" >/dev/null 2>&1; }

# The gate that a reason comes from.
gate() {
    case $text in
        *"depends on what an earlier launch left"*)
            echo "timed launches on new inputs, seen inputs and a done output take the same time" ;;
        *"a timed launch on"*) echo "timed launches on new inputs give new outputs" ;;
        *"did not write the output"*) echo "timed launches on a NaN-filled output" ;;
        *"left work running"*) echo "context-wide synchronise, and the two times compared" ;;
        *impossible*) echo "roofline: impossible time" ;;
        *"after timing"*) echo "check after timing on new inputs" ;;
        *"not deterministic"*) echo "ten launches bit by bit, each on a NaN-filled output" ;;
        *"guard band"*) echo "guard bands" ;;
        *"was overwritten"*) echo "inputs compared after the launch" ;;
        *"not finite"* | *"never written"*) echo "NaN-filled output" ;;
        *"seed 4"[3-9]*) echo "new inputs for every seed" ;;
        *baseline*) echo "relative rules" ;;
        *"|O-R|"*) echo "error against FP64" ;;
        *) head -n 1 <<<"$text" | cut -c1-100 ;;
    esac
}

# The summary, after every cheat: a run that is cut off leaves what it had.
summarise() {
    lib=tests jqf summaries/cheats -s --arg device "$device" --arg ways "$ways" --rawfile asked "$work/asked" \
        --arg sha256 "$sha256" "$work/lines" | replace_file "$json"
}
say_summary() { jq -r '"\(.caught) caught, \(.missed) missed, \(.not_run) not run on \(.device)"' "$json"; }
tally() { # VERDICT NAME GATE
    jq -nc --arg verdict "$1" --arg name "$2" --arg gate "$3" --arg way "$way" \
        '{name: $name, way: $way, verdict: $verdict, gate: $gate}' >>"$work/lines"
    summarise
    printf '%-8s %-28s %s\n' "$1" "$2" "$3"
}
caught() { tally CAUGHT "$name" "${1:-$(gate)}"; }
missed() { tally MISSED "$name" "exit $code: $(head -n 1 <<<"$text" | cut -c1-120)"; }
refused_run() { # EXIT-CODE OPTIONS...: caught when the run ends with that code
    local want=$1
    shift
    bench "$@"
    if [[ $code -eq $want ]]; then caught; else missed; fi
}

# Kernels that a check alone catches. mean_of_v and constant_zero run with tolerances that accept anything: the relative
# rules catch them.
checked() {
    local options=(--seeds 2)
    case $name in
        mean_of_v | constant_zero) options=(--seq-kv 2048 --atol 1.5 --rtol 1 --seeds 1) ;;
        half_sums) options=(--seq-kv 1024 --atol 1 --seeds 1) ;;
        one_stride_pattern) options=(--seeds 5) ;;
        wrong_scale) options=(--atol 1.5 --rtol 1.5 --seeds 1) ;;
    esac
    refused_run 1 --source "$cheats/$name.cu" "${small[@]}" "${options[@]}"
}
timed_cheat() { refused_run 1 --source "$cheats/$name.cu" "${timed[@]}"; }
below_roofline() {
    refused_run 6 --source "$cheats/skips_written_output.cu" --m 32 --batch 4 --heads 16 --seq 1024 --dim 64 \
        --check cpu --seeds 1 --warmup-ms 50 --max-time 0.1
}
equal_inputs() { # a kernel that swaps K and V, on inputs where that cannot be seen
    bench --source "$cheats/honest.cu" "${small[@]}" --seeds 1 --dump "$work/npy"
    cp "$work/npy/k.npy" "$work/npy/v.npy"
    cp "$work/npy/k.npy" "$work/npy/q.npy"
    bench --source "$cheats/kv_swap.cu" "${small[@]}" --seeds 1 --load "$work/npy"
    if [[ $code -eq 2 ]]; then caught "inputs that are loaded must be distinct"; else missed; fi
}
loosened() {
    bench --source "$cheats/honest.cu" "${small[@]}" --seeds 1 --atol 1.5
    is '.check.loosened and .check.atol == 1.5' || { missed; return; }
    caught "the record says that the tolerances are not the rule"
}
sweep() { # KERNEL OPTIONS-OF-THE-SWEEP... -- OPTIONS...: a sweep of a tiny problem
    code=0
    FA_BENCH=$bench scripts/evo_sweep.sh --strategy grid --kernel "$@" --batch 1 --heads 1 --seq 16 --dim 64 --seeds 1 \
        --device "$device" >"$work/out" 2>&1 || code=$?
    text=$(cat "$work/out")
}
loosened_leaderboard() {
    local board=$work/board
    sweep "$baseline" --budget 2 --out "$board" -- --atol 1
    jq -es 'length > 0 and any(.[]; .loosened) and all(.[]; .status != "pass" or .loosened)' \
        "$board/leaderboard.jsonl" >/dev/null 2>&1 || { missed; return; }
    [[ ! -e $board/leaderboard.json ]] ||
        jq -es 'all(.[][]; .kernels == {})' "$board/leaderboard.json" >/dev/null 2>&1 || { missed; return; }
    caught "a loosened record is no result of a sweep"
}
lower_class() { # FP16 accumulators in the sweep of a problem that FP32 ones were swept for
    local acc text_all=''
    for acc in fp32 fp16; do
        sweep "$halves" --budget 1 --out "$work/classes" -- --acc $acc
        text_all+=$text
    done
    text=$text_all
    jq -es '(map(.class) | unique) == ["fp16", "fp32"] and
        (group_by(.group) | length == 2 and all(.[]; map(.class) | unique | length == 1))' \
        "$work/classes/leaderboard.jsonl" >/dev/null 2>&1 || { missed; return; }
    caught "a class of its own: no leaderboard in common"
}
# Kernels that know what they are tried on: an ordinary run passes, the gate must not.
gated() {
    mkdir -p "$work/gated"
    cp "$cheats/$name.cu" "$cheats"/{honest,row}.cuh "$work/gated"
    "listed_$name" >"$work/gated/listed.h"
    bench --source "$work/gated/$name.cu" "${small[@]}" --seeds 5
    [[ $code -eq 0 || $name != knows_the_seeds ]] || { missed; return; } # it does not know what it claims to
    code=0
    FA_BENCH=$bench scripts/ci_gate.sh --source "$work/gated/$name.cu" --draws 6 --fail-fast --shrink 0 --jobs 2 \
        --out "$work/gate" -- --m 32 >"$work/out" 2>&1 || code=$?
    text=$(cat "$work/out")
    if [[ $code -eq 1 ]]; then caught "the gate: ${1//_/ }"; else missed; fi
}
listed_knows_the_problems() {
    scripts/ci_gate.sh --source $cheats/honest.cu --draws 0 --dry-run -- --m 32 | cut -d'|' -f3 | awk '{
        split("", v)
        v["--batch"] = 2; v["--heads"] = 8; v["--dim"] = 64
        for (i = 1; i <= NF; i++) v[$i] = $(i + 1)
        if (!("--kv-heads" in v)) v["--kv-heads"] = v["--heads"]
        if (!("--seq-kv" in v)) v["--seq-kv"] = v["--seq"]
        printf "{%d, %d, %d, %d, %d, %d, %d},\n", v["--batch"], v["--heads"], v["--kv-heads"], v["--seq"],
            v["--seq-kv"], v["--dim"], "--causal" in v
    }'
}
listed_knows_the_seeds() { # the same hash decides for each distribution, so these are all of an ordinary run
    local seed dist
    for seed in 42 43 44 45 46; do
        for dist in normal uniform outlier coded needle rising low; do
            bench --source "$cheats/honest.cu" "${small[@]}" --seeds 1 --seed $seed --dist $dist --dump "$work/npy"
            od -An -v -tu2 -j128 -N8 "$work/npy/q.npy" | awk '{print "{" $1 ", " $2 ", " $3 ", " $4 "},"}'
        done
    done | sort -u
}
idle_knob() {
    local -x XDG_CACHE_HOME=$work/cache
    bench --source "$cheats/honest.cu" "${small[@]}" --seeds 1 --vec 4
    bench --source "$cheats/honest.cu" "${small[@]}" --seeds 1 --vec 8
    if [[ $code -eq 0 ]] && is '.ptxas == null'; then
        tally NOT-RUN "$name" "$(jq -r '.ptxas_reason // "no figures from ptxas"' "$record" | head -n 1 | cut -c1-100)"
        return
    fi
    is '.provenance.same_code_as != null' || { missed; return; }
    caught "the same machine code as another configuration"
}
hidden_tile() {
    bench --source "$cheats/hides_its_tile.cu" "${small[@]}" --seeds 1 --m 64
    is '.config.m == 32' || { missed; return; }
    caught "constants read back from the module"
}
edited() { # FILE SED GATE: the kernel passes, then a file of it is edited, then it must not pass
    local first
    bench --source "$work/stale/k.cu" "${small[@]}" --seeds 1
    first=$code
    sed -i "$2" "$work/stale/$1"
    bench --source "$work/stale/k.cu" "${small[@]}" --seeds 1
    if [[ $first -eq 0 && $code -eq 1 ]]; then caught "$3"; else missed; fi
    rm -rf "$work/stale"
}
stale_cache() { # HEADER-LINE FOLDER-OF-HEADER
    mkdir -p "$work/stale/$2"
    sed "s|^#include \"honest.cuh\"|#include $1|" "$cheats/honest.cu" >"$work/stale/k.cu"
    cp "$cheats/honest.cuh" "$work/stale/$2/edited.cuh"
    edited "$2/edited.cuh" 's/s \*= p.scale;/s *= p.scale * 1.1f;/' "the cache key holds every file the kernel includes"
}
edited_kernel() {
    mkdir -p "$work/stale"
    cp "$cheats/honest.cu" "$work/stale/k.cu"
    cp "$cheats/honest.cuh" "$work/stale"
    edited k.cu 's/if (at.inside)/if (at.inside \&\& at.row > 0)/' "the cache key holds the source"
}
included_by_macro() { # an include that the cache could not follow
    mkdir -p "$work/stale"
    sed 's|^#include "honest.cuh"|#define FILE "honest.cuh"\n#include FILE|' "$cheats/honest.cu" >"$work/stale/k.cu"
    cp "$cheats/honest.cuh" "$work/stale"
    bench --source "$work/stale/k.cu" "${small[@]}" --seeds 1
    if [[ $code -eq 6 ]]; then caught "an include through a macro is refused"; else missed; fi
    rm -rf "$work/stale"
}
corrupt_cache() { # another kernel's code under this kernel's key
    local -x XDG_CACHE_HOME=$work/cache
    bench --source "$cheats/honest.cu" "${small[@]}" --seeds 1
    bench --source "$cheats/wrong_scale.cu" "${small[@]}" --seeds 1
    local entry file good='' bad=''
    for file in module.so module.cubin; do
        good='' bad=''
        for entry in "$work"/cache/fa_bench/*/; do
            [[ -e $entry$file ]] || continue
            if grep -q '^/\* No cheat' "$entry/source.cu"; then good=$entry; fi
            if grep -q '^/\* Two per cent' "$entry/source.cu"; then bad=$entry; fi
        done
        if [[ -n $good && -n $bad ]]; then cp "$good$file" "$bad$file"; fi
    done
    bench --source "$cheats/wrong_scale.cu" "${small[@]}" --seeds 1
    if [[ $code -eq 1 ]]; then caught "digests of every file of a cache entry"; else missed; fi
}
missing_tool() { # a PATH without the tool: NOT-RUN is no pass
    local path=$work/bin tool command
    mkdir -p "$path"
    for tool in bash env jq awk sed grep cat date dirname basename mktemp rm mkdir nproc head tail tr cut sort wc stat \
        git sleep timeout ls cp mv; do
        ln -sf "$(command -v "$tool")" "$path/$tool" 2>/dev/null || true
    done
    case $name in
        no_profiler) command=(PATH="$path" scripts/ncu_profile.sh --kernel "$tiled") ;;
        no_sanitizer)
            command=(PATH="$path" scripts/ci_gate.sh --sanitize --kernel "$baseline" --out "$work/gate")
            ;;
        no_gpu)
            command=(CUDA_VISIBLE_DEVICES='' scripts/ci_gate.sh --require-gpu --quick --draws 0 --kernel "$tiled"
                --out "$work/gate")
            ;;
    esac
    code=0
    env FA_BENCH="$bench" "${command[@]}" >"$work/out" 2>&1 || code=$?
    text=$(cat "$work/out")
    [[ $code -eq 4 || ($name == no_gpu && $code -eq 1) ]] || { missed; return; }
    caught "a missing tool or GPU is NOT-RUN, exit $code"
}
no_reference() { # --check cublas where there is none
    bench --source "$cheats/wrong_scale.cu" "${small[@]}" --seeds 1 --check cublas
    if [[ $code -eq 4 || $code -eq 1 ]]; then caught "no reference, no verdict"; else missed; fi
}
shim() { # MODE OPTIONS...: what lies between the bench and the driver
    local real
    real=$(ldconfig -p | awk '/libcuda\.so\.1 .*x86-64/ {print $NF; exit}')
    [[ -n $real ]] ||
        real=$(find /usr/lib /usr/lib64 /usr/local -name libcuda.so.1 -not -path '*/stubs/*' 2>/dev/null | head -n 1)
    mkdir -p "$work/shim"
    if [[ -z $real ]] || ! "${CC:-gcc}" -O1 -shared -fPIC -Isrc -o "$work/shim/libcuda.so.1" $cheats/shim_cuda.c -ldl \
        2>"$work/out"; then
        tally NOT-RUN "$name" "no libcuda.so.1 found, or no gcc"
        return
    fi
    # Compiled before: NVRTC looks into libcuda for more than the shim has.
    bench --source "$cheats/honest.cu" "${timed[@]}"
    local -x FA_SHIM=$1 FA_REAL_LIBCUDA=$real FA_SHIM_OUT=$work/share
    local -x LD_LIBRARY_PATH=$work/shim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    bench --source "$cheats/honest.cu" "${timed[@]}" "${@:2}"
}
other_stream() {
    shim other_stream --seq 1024
    [[ -n ${code:-} && $(tail -n 1 "$work/lines") == *other_stream* ]] && return
    if [[ $code -ne 0 && $text == *"left work running"* ]]; then caught; else missed; fi
}
persisting_l2() {
    shim persisting
    [[ $(tail -n 1 "$work/lines") == *persisting_l2* ]] && return
    [[ $code -eq 0 && $(cat "$work/share" 2>/dev/null) == 0 ]] || { missed; return; }
    caught "the persisting share of the L2 is 0 at every sample"
}
same_code_vs() { # a kernel does not beat itself
    bench --kernel "$tiled" --vs "$tiled" --seq 256 --seeds 1 --warmup-ms 50 --max-time 0.3
    is '.vs.accepted == false and .vs.same_code' || { missed; return; }
    caught "a ratio within the A/A noise is not accepted"
}

# Ways to fool a bench, and the cheats that try each: name, needs, way, function[:arguments].
ways="keeps:a result kept by pointer or by contents
some:only some launches compute
nothing:nothing is written
inputs:inputs, or what lies beside the output, are overwritten
elsewhere:work on another stream
constant:a constant or a mean
precision:lower precision inside
wrong:wrong, on inputs or under tolerances that hide it
knows:right for the shapes, seeds or strides that it knows
l2:a persisting share of the L2
knob:a knob that does nothing
stale:an edit that is not compiled
tool:a missing tool, GPU or reference counts as a pass
roofline:a time below the roofline
self:noise counts as a gain"
all=(
    "cached_by_pointer any keeps checked"
    "cached_in_device_variable any keeps checked"
    "cached_by_contents gpu keeps timed_cheat"
    "first_launch_only any some checked"
    "skips_written_output gpu some timed_cheat"
    "stops_after_the_check gpu some timed_cheat"
    "wrong_after_a_while gpu some timed_cheat"
    "writes_nothing any nothing checked"
    "overwrites_input any inputs checked"
    "strays_behind_output any inputs checked"
    "other_stream gpu elsewhere other_stream"
    "mean_of_v any constant checked"
    "constant_zero any constant checked"
    "half_sums any precision checked"
    "lower_class any precision lower_class"
    "kv_swap any wrong checked"
    "wrong_scale any wrong checked"
    "equal_inputs any wrong equal_inputs"
    "loosened_tolerance any wrong loosened"
    "loosened_leaderboard any wrong loosened_leaderboard"
    "one_stride_pattern any knows checked"
    "knows_the_problems any knows gated:problems_drawn_from_a_new_seed_each_time"
    "knows_the_seeds any knows gated:other_problems_than_those_of_a_run"
    "persisting_l2 gpu l2 persisting_l2"
    "idle_knob any knob idle_knob"
    "hidden_tile any knob hidden_tile"
    "edited_kernel any stale edited_kernel"
    "edited_header any stale stale_cache:\"edited.cuh\":."
    "edited_system_header any stale stale_cache:<edited.cuh>:."
    "edited_nested_header any stale stale_cache:\"sub/edited.cuh\":sub"
    "include_by_macro any stale included_by_macro"
    "corrupt_cache any stale corrupt_cache"
    "no_profiler none tool missing_tool"
    "no_sanitizer none tool missing_tool"
    "no_gpu none tool missing_tool"
    "no_reference any tool no_reference"
    "below_roofline gpu roofline below_roofline"
    "same_code_vs gpu self same_code_vs"
)
if [[ ${flag[list]} -eq 1 ]]; then
    printf '%s\n' "${all[@]}" | awk '{print $2, $1, $3}'
    exit 0
fi
# The two lowest rungs of the registry, and the first kernel with FP16 accumulators.
registry=$("$bench" --list-kernels --json -)
read -r baseline tiled < <(
    jq -r '[.[] | select(.kind == "hand" and .variant_of == null).name][:2] | join(" ")' <<<"$registry")
halves=$(jq -r '[.[] | select(.values.acc // [] | index("fp16"))][0].name' <<<"$registry")
mkdir -p "$(dirname "$json")"
bench --source "$cheats/honest.cu" "${small[@]}" --seeds 2
if [[ $code -ne 0 ]]; then
    die 4 "NOT-RUN: the honest kernel does not pass here: $text"
fi
rows=()
for row in "${all[@]}"; do
    [[ ${#only[@]} -gt 0 && " ${only[*]} " != *" ${row%% *} "* ]] || rows+=("$row")
done
printf '%s\n' "${rows[@]}" >"$work/asked"
sha256=$(cat tests/cheats/* | sha256sum | cut -d' ' -f1)
[[ -z ${opt[resume]} ]] || lib=tests jqf summaries/cheats_settled -c --arg device "$device" --arg sha256 "$sha256" \
    --rawfile asked "$work/asked" "${opt[resume]}" >"$work/lines"
settled=" $(jq -r .name "$work/lines" | xargs) "
summarise
trap 'summarise; say_summary; exit 143' TERM # once the command that runs has ended
for row in "${rows[@]}"; do
    read -r name needs way how <<<"$row"
    [[ $settled != *" $name "* ]] || continue
    if [[ $needs == gpu && $device != cuda ]]; then
        tally NOT-RUN "$name" "needs a GPU"
        continue
    fi
    IFS=: read -ra call <<<"$how"
    code=0 text=''
    "${call[@]}"
done
say_summary
jq -e '.missed == 0' "$json" >/dev/null
