# shellcheck shell=bash disable=SC2034,SC2154 # tables and settings are of scripts/ci_gate.sh
# Runs the cases, several of one kernel in one process, and judges each. Sourced by scripts/ci_gate.sh.

out_of_time() { [[ $limit -gt 0 && $SECONDS -ge $limit ]]; }

at_once() { # COMMAND...: in the background, as many as --jobs at a time
    "$@" &
    running=$((running + 1))
    if [[ $running -ge $jobs ]]; then
        wait -n || true
        running=$((running - 1))
    fi
}

# What a sanitizer found. That the bench ended with another code than 0 counts as an error there; its record says why.
findings() { # TEXT
    awk '/ERROR SUMMARY:.*not printed/ {n++}
        /Target application returned an error/ {n--}
        / SUMMARY: / {said = 1; sub(/.* SUMMARY: /, ""); n += $1}
        END {print said ? (n > 0 ? n : 0) : "none"}' "$1"
}

device_of() { # TOOL: the emulator looks for what a result need not show
    if [[ $1 =~ ^(race|address|undefined)$ ]]; then echo emu; else echo "$device"; fi
}
# The command that runs cases of one kernel, without them, into the array `command`.
command_for() { # KERNEL TOOL
    local asked
    subject "$1"
    local run=("$bench" "${asked[@]}" --device "$(device_of "$2")" --timing none --quiet)
    # Each check gets its share of the cores: threads of many checks that spin for one another only take turns.
    command=(env OMP_NUM_THREADS="$threads" OMP_WAIT_POLICY=passive "${run[@]}")
    if [[ $sanitize -eq 1 ]]; then
        # One thread for the reference: the cores are full of other cases.
        command=(env OMP_NUM_THREADS=1 compute-sanitizer --tool "$2" --target-processes all --error-exitcode 9
            --show-backtrace device)
        # Kernels of libraries have more barriers than the tool makes room for, and then it stops them.
        [[ $2 != synccheck ]] || command+=(--num-cuda-barriers 100000)
        command+=("${run[@]}" --check cpu)
    fi
    if [[ $limit -gt 0 ]]; then
        local left=$((limit + 10 - SECONDS))
        command=(timeout --kill-after=2 $((left > 1 ? left : 1)) "${command[@]}")
    fi
}

# Cases of one kernel under one tool, in one process: with its context, and what a sanitizer does first, once for all.
# Each leaves a record, and a case that says what came of it. A sanitizer's findings are of no case in particular, and
# what has no record may be another's fault: then each gets a process of its own. A finding is exit 9.
unit() { # NUMBERS
    local first=$1 number kernel tool args code=0 cut=0 found command
    ! out_of_time || return 0
    [[ ${flag[fail-fast]} -eq 0 || ! -e $out/failed ]] || return 0
    IFS='|' read -r kernel tool args <<<"${lines[first - 1]}"
    local at=$out/records/$first
    command_for "$kernel" "$tool"
    if [[ $# -eq 1 ]]; then
        rm -f "$at.json" # of an earlier try
        # shellcheck disable=SC2206
        command+=(--json "$at.json" $args)
    else
        for number in "$@"; do echo "${lines[number - 1]##*|}"; done >"$at.runs"
        command+=(--runs "$at.runs" --json "$at.jsonl")
    fi
    "${command[@]}" >"$at.txt" 2>&1 || code=$?
    [[ $# -eq 1 ]] || part_records "$at.jsonl" "$@"
    [[ $limit -eq 0 || ($code -ne 124 && $code -ne 137) ]] || cut=1
    if [[ $sanitize -eq 1 ]]; then
        [[ $cut -eq 0 ]] || return 0 # not reached, as good as: the tool says at the end what it found
        found=$(findings "$at.txt")
        [[ $found == 0 || $found == none ]] || code=9
        [[ $found != none ]] || code=137 # ended before it could say
        if [[ $# -gt 1 && ($code -eq 9 || $code -eq 137 || $(all_there "$@") -eq 0) ]]; then
            for number in "$@"; do unit "$number"; done
            return
        fi
    fi
    for number in "$@"; do
        if [[ -s $out/records/$number.json || $# -eq 1 ]]; then
            judge "$number" "$code" "$at.txt" >"$out/records/$number.case.tmp"
            mv "$out/records/$number.case.tmp" "$out/records/$number.case"
        elif [[ $cut -eq 0 ]]; then
            unit "$number"
        fi
    done
}

# The record of each line that has one, as if it had been alone.
part_records() { # FILE NUMBERS
    local file=$1 line record
    shift
    [[ -e $file ]] || return 0
    while IFS=$'\t' read -r line record; do
        echo "$record" >"$out/records/${!line}.json"
    done < <(jq -r '"\(.provenance.line)\t\(tojson)"' "$file" 2>/dev/null || true) # the last one may be cut off
}

# 1 when each case has a record that passed, or says why it could not run: none of an error.
all_there() { # NUMBERS
    local number
    for number in "$@"; do
        if ! jq -e '.status | IN("pass", "infeasible", "not_run")' "$out/records/$number.json" >/dev/null 2>&1; then
            echo 0
            return
        fi
    done
    echo 1
}

# A case of its record, of what the process said and of its code; scripts/lib/gate/case.jq has the verdict.
judge() { # NUMBER CODE TEXT
    local record=$out/records/$1.json kernel tool args library=false own=false said
    IFS='|' read -r kernel tool args <<<"${lines[$1 - 1]}"
    [[ -s $record ]] || echo '{}' >"$record"
    [[ ${kind[$kernel]:-} != library ]] || library=true
    [[ -z $source && $kernel != library:* ]] || own=true
    said=$(jqf gate/case -c --arg kernel "$kernel" --arg tool "$tool" --arg args "$args" --argjson code "$2" \
        --argjson library "$library" --argjson own "$own" --argjson gpu "$gpu" --argjson sanitize "$sanitize" \
        --arg device "$device_name" --arg key "${key[$1]:-}" --rawfile text "$3" "$record")
    [[ $said != *'"verdict":"failed"'* ]] || : >"$out/failed"
    echo "$said"
}

# The cases that are done, in order, and what they come to; made again as they finish, so that a gate that is cut off
# leaves it.
gather() {
    local i
    for ((i = 1; i <= ${#lines[@]}; i++)); do
        [[ ! -e $out/records/$i.case ]] || cat "$out/records/$i.case"
    done >"$cases"
}
summarise() { # NOTE
    jqf gate/summary -s --arg dtype "${opt[dtype]}" --arg device "$device" --arg note "$1" --arg gpu "$device_name" \
        --argjson sanitize "$sanitize" --argjson race "$race" --argjson seed "$seed" --argjson draws "$draws" \
        "$cases" >"$out/summary.json"
}

# Units in the order of the list: what is cut off has tried every kernel. The emulator has nothing to share.
units() {
    local per_unit=1 number
    [[ $device != cuda ]] || per_unit=8
    [[ $sanitize -eq 0 ]] || per_unit=6
    for ((number = 1; number <= ${#lines[@]}; number++)); do
        [[ -e $out/records/$number.case ]] || echo "$number|${lines[number - 1]}"
    done | awk -F'|' -v per="$per_unit" '
        {g = $2 "|" $3; nth = seen[g]++; at = int(nth / ($3 ~ /^(race|address|undefined)$/ ? 1 : per)) "|" g}
        {if (!(at in of)) order[++n] = at; of[at] = of[at] " " $1}
        END {for (i = 1; i <= n; i++) print of[order[i]]}'
}
run_cases() {
    local all unit numbers finished=0
    threads=$((($(nproc) + jobs - 1) / jobs))
    mapfile -t all < <(units)
    for unit in "${all[@]}"; do
        ! out_of_time || break
        read -r -a numbers <<<"$unit"
        at_once unit "${numbers[@]}"
        finished=$((finished + ${#numbers[@]}))
        if [[ $((finished / 20)) -gt $(((finished - ${#numbers[@]}) / 20)) ]]; then
            gather
            summarise "unfinished: $(wc -l <"$cases") of ${#lines[@]} cases"
        fi
    done
    wait
    running=0
    settle_others
    gather
    [[ ! -e $out/not_reached ]] || jqf gate/not_reached -Rc "$out/not_reached" >>"$cases"
}
settle_others() { # cases without a verdict: a process that was killed is a failure; the limit leaves the others
    local number
    for ((number = 1; number <= ${#lines[@]}; number++)); do
        [[ ! -e $out/records/$number.case ]] || continue
        [[ ${flag[fail-fast]} -eq 0 || ! -e $out/failed ]] || continue
        if [[ $limit -eq 0 ]]; then
            judge "$number" 137 /dev/null >"$out/records/$number.case"
        else
            echo "${lines[number - 1]}" >>"$out/not_reached"
        fi
    done
}
