#!/usr/bin/env bash
# One number for one kernel file: proven on the emulator, compiled, proven and timed on the GPU against an incumbent.
#
# usage: scripts/evaluate.sh CANDIDATE.cu [options] [-- fa_bench options for every run, e.g. --m 32 --timeout 60]
#   --problems FILE    what to run (default scripts/lib/score/problems.txt, which explains the format)
#   --incumbent SPEC   what the candidate is timed against, as in fa_bench --vs: a kernel of the registry or a FILE.cu,
#                      with its tile (light:m=32,warps=4) or without (default: the bench's, of these problems)
#   --score BY         speed: geometric mean of the paired ratios of the GPU (default)
#                      bound: how much lower the static bound is than the incumbent's; no GPU
#                      emulator: 1 for a candidate that is right on the emulator; no GPU
#   --stages LIST      of emulator,compile,gpu (default: all three)
#   --arch sm_XX       compile target (default: the GPU's, sm_89 without one)
#   --out FILE         write the score to FILE, not to stdout
#   --fresh            do not take the score from the cache
# Prints one line of JSON, schema fa_bench.score/1 (tests/schemas/). Stages are gates: the first run
# that fails ends the evaluation. `combined_score` is 0 when anything is wrong, null when its stage did not run. What a
# model may read is all but `private`, the results of the hidden problems. A candidate sets its tile in a line of its
# own:
#   // fa_bench: --m 64 --warps 4        knobs of fa_bench and nothing else
# and what it cannot do without in another (// FA_NEEDS: packed mha): problems that this leaves out do not count.
# The same code, problems, options and bench give the same score from the cache, under $XDG_CACHE_HOME/fa_bench_scores.
# Exit: 0 whenever there is a score, 2 usage, 4 not run (no fa_bench, no jq, no --bound where it is asked for, a
# candidate that was written meanwhile), 6 the score cannot be written to --out.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
fail_with_error
opt=([problems]=$lib/score/problems.txt [incumbent]='' [score]=speed [stages]='emulator,compile,gpu' [arch]='' [out]='')
flag=([fresh]=0)
arguments=words
parse_options "$@"
[[ ${#words[@]} -eq 1 ]] || die 2 "takes one CANDIDATE.cu (see --help)"
candidate=${words[0]}
for file in "$candidate" "${opt[problems]}"; do
    is_input "$file" || die 2 "no file '$file'"
done
[[ ${opt[score]} =~ ^(speed|bound|emulator)$ ]] || die 2 "--score takes speed, bound or emulator, not '${opt[score]}'"
[[ ,${opt[stages]}, =~ ^(,(emulator|compile|gpu))+,$ ]] ||
    die 2 "--stages takes a list of emulator, compile and gpu, not '${opt[stages]}'"
own="kernel source library vs device arch compile-only schedule race timing"
refuse_own "$own" "${more[@]}"
incumbent_file=${opt[incumbent]%%:*}
[[ $incumbent_file == *.cu ]] || incumbent_file=''
[[ -z $incumbent_file ]] || is_input "$incumbent_file" || die 2 "no file '$incumbent_file'"
bench=${FA_BENCH:-$here/../fa_bench}
need_bench

# Every file that FILE includes by name: beside itself, beside SOURCE, or from the root; and what those include.
included_files() { # FILE SOURCE
    local name path
    while IFS= read -r name; do
        path=$(dirname "$1")/$name
        [[ -f $path ]] || path=$(dirname "$2")/$name
        [[ $name != /* ]] || path=$name
        [[ -f $path && -z ${seen[$path]:-} ]] || continue
        seen[$path]=1
        included+=("$path")
        included_files "$path" "$2"
    done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">].*/\1/p' "$1")
}
content_key() {
    local root=$here/.. included=() files
    declare -A seen=()
    included_files "$candidate" "$candidate"
    [[ -z $incumbent_file ]] || { included+=("$incumbent_file") && included_files "$incumbent_file" "$incumbent_file"; }
    shopt -s nullglob
    {
        files=("$candidate" "${included[@]}" "${opt[problems]}" "$0" "$bench"
            "$lib"/{score,kinds,record}.jq
            "$root"/{include,kernels{,/*},src/{cuda,emu/{core,include}}}/*
            /proc/driver/nvidia/{version,gpus/*/information})
        # Without names, and the size of each, so that no two lists of files read the same.
        { stat -Lc %s "${files[@]}"; cat "${files[@]}"; } 2>/dev/null || true
        echo "${opt[incumbent]}|${opt[score]}|${opt[stages]}|${opt[arch]}|${more[*]}|${CUDA_VISIBLE_DEVICES-all}"
    } | sha256sum 2>/dev/null
    shopt -u nullglob
}

key=$(content_key)
[[ -n $key ]] || die 4 "NOT-RUN: no sha256sum"
caches=${HOME:+$HOME/.cache}
[[ ${XDG_CACHE_HOME:-} != /* ]] || caches=$XDG_CACHE_HOME # without either there is no cache
cached=${caches:+$caches/fa_bench_scores/${key%% *}.json}
if [[ ${flag[fresh]} -eq 0 && -s $cached && -r $cached ]]; then
    score=$(<"$cached")
    if [[ $score == '{"schema":"fa_bench.score/1",'*'}' ]]; then # whole
        put_out "${opt[out]}" <<<"${score/'"cache":false'/'"cache":true'}"
        exit 0
    fi
fi

make_work
start=$EPOCHREALTIME
if [[ ,${opt[stages]}, =~ ,(compile|gpu), ]]; then # a context takes half a second
    exec {probe}< <("$bench" --device cuda --select --quiet --json - 2>/dev/null)
fi
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # threads of several runs at once that spin only take turns
registry=$("$bench" --list-kernels --json -)
incumbent=${opt[incumbent]}
if [[ -z $incumbent ]]; then # what a run takes; of features that the first default does not serve, another
    sed -nE 's/^(public|hidden) gpu //p' "${opt[problems]}" |
        "$bench" --runs - --select --quiet --json "$work/selected" >/dev/null 2>&1 || true
    incumbent=$(jq -r --slurpfile of <(cat "$work/selected" 2>/dev/null || true) \
        '.[] | select(.default).name as $name | $of | map(.kernel) - [$name] | .[0] // $name' <<<"$registry")
fi
[[ -n $incumbent_file ]] || kernel_exists "${incumbent%%:*}" || die 2 "--incumbent: no kernel '${incumbent%%:*}'"

tile_options='--(m|n|warps|vec|stages|swizzle|acc|splits|maxreg)'
# A file's own tile: knobs and nothing else, so that it cannot loosen its own check.
knobs_of() { # FILE: sets knobs and refused
    local words
    read -rd '' -a words < <(sed -nE 's|^[[:space:]]*// fa_bench:||p' "$1" | tr '\r' ' ') || true
    knobs=${words[*]}
    refused=''
    [[ " $knobs" =~ ^(\ $tile_options\ [a-z0-9]+)*\ ?$ ]] ||
        refused="the line '// fa_bench:' takes tile options and their values, nothing else: $knobs"
}
if [[ $incumbent == "$incumbent_file" ]]; then
    knobs_of "$incumbent"
    [[ -z $refused ]] || die 2 "$incumbent: $refused"
    incumbent+=$(sed -E 's/--([a-z]+) ([a-z0-9]+) ?/,\1=\2/g; s/^,/:/' <<<"$knobs")
fi
code=0 said=$("$bench" --vs "${incumbent_file:+source:}$incumbent" --select --quiet 2>&1) || code=$?
[[ $code -ne 2 ]] || die 2 "--incumbent: ${said#fa_bench: }"
knobs_of "$candidate"

# Lines of the problem list for a stage, the public ones first: "public OPTIONS".
problems() { # emulator|gpu
    local visible
    for visible in public hidden; do
        awk -v v=$visible -v w="$1" '$1 == v && $2 == w {$2 = ""; print}' "${opt[problems]}"
    done
}
bad=$(grep -anvE '^[[:space:]]*(#|$)|^(public|hidden) (emulator|gpu) --' "${opt[problems]}" | head -n 1 | tr -d '\0') ||
    true
[[ -z $bad ]] || die 2 "${opt[problems]}: not a problem in line ${bad/:/: } (public|hidden emulator|gpu OPTIONS)"
read -rd '' -a problem_words < <(sed -E '/^(public|hidden)/!d' "${opt[problems]}") || true
refuse_own "$own" "${problem_words[@]}"
grep -aqE '^(public|hidden)' "${opt[problems]}" || die 2 "no problem in ${opt[problems]}"

# Native code may write where fa_bench writes, or kill it.
# shellcheck disable=SC2016 # jq's
broken='{schema: "fa_bench.result/1", status: "error", reason: $why}'
# Starts the runs of $work/NAME.list ("VISIBLE OPTIONS"), if any; several stages are at work at once. behind: on the
# cores, those that are waited for later.
declare -A records=() processes=()
begin() { # NAME COMMON-OPTIONS...
    local from name=$1
    [[ -s $work/$1.list ]] || return 0
    sed -E 's/^[a-z]+ //' "$work/$1.list" >"$work/$1.runs"
    exec {from}< <(exec nice -n "${behind:-0}" "${dies_with_us[@]}" "$bench" --runs "$work/$1.runs" "${@:2}" --quiet \
        --json - 2>"$work/$1.err")
    records[$name]=$from processes[$name]=$!
}
end_process() { # NAME: also where it is at work
    local from=${records[$1]}
    kill "${processes[$1]}" 2>/dev/null || true
    exec {from}<&-
    wait "${processes[$1]}" 2>/dev/null || code=$?
    unset "processes[$1]"
}
# Takes the records of a stage that was begun, until a run does not pass, to $work/NAME.jsonl.
run_stage() { # NAME
    local name=$1 record code=0 lines taken=0 state
    lines=$(wc -l <"$work/$name.runs")
    progress "$name: run 1 of $lines"
    while read -r -u "${records[$name]}" record; do
        echo "$record" >>"$work/$name.jsonl"
        progress "$name: $((++taken)) of $lines runs done"
        [[ $record != *'"status":"usage"'* ]] || die 2 "fa_bench refuses a run: $(jq -r .reason <<<"$record")"
        [[ $record == *'"status":"pass"'* ]] || jqf score/left_out -e <<<"$record" >/dev/null 2>&1 || break
    done
    progress
    end_process "$name"
    state=$(jqf score/state -rs --argjson lines "$lines" "$work/$name.jsonl" 2>/dev/null) || state=broken
    if [[ $state == broken ]]; then
        jq -nc "$broken" --arg why "the kernel wrote among the records of fa_bench" >"$work/$name.jsonl"
    elif [[ ! -s $work/$name.jsonl && $code -ne 2 ]]; then
        jq -nc "$broken" --arg why "fa_bench ended with code $code before its first record" >"$work/$name.jsonl"
    elif [[ ! -s $work/$name.jsonl ]]; then # the options are refused
        record=$(head -n 1 "$work/$name.err")
        [[ ! $record =~ \.runs\ line\ [0-9]+:\ (.*) ]] || die 2 "fa_bench refuses a run of $name: ${BASH_REMATCH[1]}"
        [[ $name != incumbent && -n $knobs && $record =~ $tile_options\ takes ]] ||
            die 2 "fa_bench begins no run of $name: $record"
        refused=$record
        : >"$work/$name.list"
    fi
    [[ $state == settled ]]
}

wants() { # STAGE: it is asked for, and nothing before it has failed
    [[ ,${opt[stages]}, == *,$1,* && -z $refused && $failed -eq 0 ]]
}
ask() { # STAGE: its problems, if any, with fa_bench's options on top of the defaults here
    begin "$1" --source "$candidate" "${@:2}" "${own_knobs[@]}" "${more[@]}"
}
take() { # STAGE LATER...: its failure is the evaluation's, and what is at work for later stages counts as not run
    local name code
    [[ ! -v processes[$1] ]] || run_stage "$1" || failed=1
    [[ -n $refused || $failed -eq 1 ]] || return 0
    for name in "${!processes[@]}"; do end_process "$name"; done
    for name in "${@:2}"; do : | tee "$work/$name.list" >"$work/$name.jsonl"; done
}
failed=0
dies_with_us=(setpriv --pdeathsig TERM) # a kernel that hangs does not outlive a script that is killed
command -v setpriv >/dev/null || dies_with_us=()
read -ra own_knobs <<<"$knobs"
touch "$work"/{emulator,race,compile,gpu,incumbent}.{list,jsonl} "$work/gate"

gpu=null arch=${opt[arch]:-sm_89}
if [[ -n ${probe:-} ]]; then
    gpu=$(jq -c 'select(.status != "not_run") | .device | values | {name, arch}' <&"$probe" 2>/dev/null) || true
    gpu=${gpu:-null}
    [[ -n ${opt[arch]} || ! $gpu =~ '"arch":"'(sm_[0-9]+) ]] || arch=$(gpu_target "${BASH_REMATCH[1]}")
fi

# Emulator, race detector and compilers are at work at once; what they say counts in this order. On the GPU inputs and
# references are made meanwhile: no kernel runs there before the gate is open.
if [[ $gpu != null ]] && wants gpu; then
    problems gpu >"$work/gpu.list"
    exec {gate}<"$work/gate"
    flock "$gate" || die 4 "NOT-RUN: no flock"
    behind=10 FA_GPU_GATE=$work/gate ask gpu --device cuda --arch "$arch" --vs "${incumbent_file:+source:}$incumbent" \
        --timeout 120 --no-bound --warmup-ms 500 --max-time 0.2 --jobs 3
fi
if wants emulator; then
    problems emulator | while read -r line; do
        for schedule in ascending descending greedy random; do echo "$line --schedule $schedule"; done
    done >"$work/emulator.list"
    problems emulator | sed 's/$/ --schedule random/' >"$work/race.list"
    emulated=(--device emu --check cpu --timeout 60) cores=$(nproc)
    [[ -z ${opt[arch]} && $gpu == null ]] || emulated+=(--arch "$arch") # what the compile stage compiles, too
    # Runs that begin together compile the same: so not too many.
    ask emulator --seeds 2 "${emulated[@]}" --jobs $((cores < 8 ? cores : 8))
    behind=19 ask race --race --seeds 1 "${emulated[@]}"
fi
if wants compile; then
    problems gpu >"$work/compile.list"
    of=--kernel rest=${incumbent#*:}
    [[ -z $incumbent_file ]] || of=--source
    [[ $incumbent == *:* ]] || rest=''
    read -ra incumbent_knobs <<<"$(knob_options "$rest")"
    incumbents=("$of" "${incumbent%%:*}" "${incumbent_knobs[@]}")
    compiled=(--compile-only --arch "$arch" --timeout 120)
    ask compile "${compiled[@]}" --bound
    if [[ -v processes[gpu] ]]; then # into the cache, from which the GPU's processes take it
        cp "$work/compile.list" "$work/beside.list"
        behind=10 begin beside "${incumbents[@]}" "${compiled[@]}" --no-bound "${more[@]}" --jobs 3
    fi
fi

take emulator race compile gpu
compiles=1
[[ ! -v processes[compile] ]] || run_stage compile || compiles=0
if [[ $compiles -eq 0 && -v processes[gpu] ]]; then
    end_process gpu
    : >"$work/gpu.list"
fi
[[ -z ${gate:-} ]] || flock -u "$gate" # the race detector takes longest: the GPU need not wait
take race compile gpu
if [[ -s $work/race.jsonl ]]; then
    sed 's/$/ --race/' "$work/race.list" >>"$work/emulator.list"
    cat "$work/race.jsonl" >>"$work/emulator.jsonl"
fi
[[ $compiles -eq 1 ]] || failed=1
if [[ ${opt[score]} == bound && -s $work/compile.list ]] && wants compile; then
    cp "$work/compile.list" "$work/incumbent.list"
    begin incumbent "${incumbents[@]}" "${compiled[@]}" --bound "${more[@]}"
    run_stage incumbent ||
        die 4 "NOT-RUN: no bound of the incumbent $incumbent: $(jq -r '.reason // empty' "$work/incumbent.jsonl")"
fi
take gpu

# shellcheck disable=SC2154 # $start is set above
{ read -r lasts && IFS= read -r score; } < <(jqf score/score -nc --slurpfile emulator "$work/emulator.jsonl" \
    --slurpfile compile "$work/compile.jsonl" --slurpfile gpu "$work/gpu.jsonl" \
    --slurpfile incumbents "$work/incumbent.jsonl" --rawfile emulator_list "$work/emulator.list" \
    --rawfile compile_list "$work/compile.list" --rawfile gpu_list "$work/gpu.list" \
    --rawfile problems "${opt[problems]}" --arg candidate "${candidate##*/}" --arg key "${key%% *}" \
    --arg knobs "$knobs" --arg incumbent "$incumbent" --arg by "${opt[score]}" --arg arch "$arch" \
    --arg stages "${opt[stages]}" --argjson device "$gpu" --arg refused "$refused" \
    --argjson seconds "$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {print b - a}')")
[[ $(content_key) == "$key" ]] ||
    die 4 "NOT-RUN: $candidate, or what it is run with, was written meanwhile: run again"
[[ $lasts != true || -z $cached ]] || replace_file "$cached" <<<"$score" 2>/dev/null ||
    echo "$script: the score is not kept: cannot write $cached" >&2
put_out "${opt[out]}" <<<"$score"
