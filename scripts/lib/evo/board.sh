# shellcheck shell=bash disable=SC2154
# The leaderboard of scripts/evo_sweep.sh, which sources this: its leaders, its top eight. Expects $log, $out, $work,
# $tried, $kernel, $problem_options, $explore, $engine and the SWEEP_ names.
board=$out/leaderboard.json
best=$out/micro_best.json

# Stdin becomes the file, or nothing changes and the sweep ends.
replace() { # FILE
    if ! { cat >"$1.tmp"; } 2>/dev/null || ! mv "$1.tmp" "$1"; then
        rm -f "$1.tmp"
        die 6 "cannot write $1: it is as it was"
    fi
}

append() { # LINE
    "${engine[@]}" append "$log" <<<"$1" || exit
}

# Right on fresh seeds, five unless the sweep was given another number, and timed by the whole protocol.
confirmed() { # KNOBS
    rm -f "$work/confirm"
    # shellcheck disable=SC2046
    "$FA_BENCH" "$(kernel_flag "$kernel")" "${kernel#source:}" $(knob_options "$1") "${problem_options[@]}" \
        --seed $((2000 + start % 100000)) --quiet --json "$work/confirm" 2>/dev/null
}

# Beaten only by --vs, twice, each in a fresh process on a fresh seed (docs/timing.md).
beats() { # KERNEL KNOBS OTHER_KERNEL OTHER_KNOBS
    local round
    for round in 1 2; do
        # shellcheck disable=SC2046
        "$FA_BENCH" "$(kernel_flag "$1")" "${1#source:}" $(knob_options "$2") --vs "$3:$4" "${problem_options[@]}" \
            --seed $((1000 + round * 10 + start % 100000)) --quiet --json "$work/vs" 2>/dev/null || return 1
        jq -e '.vs.accepted == true' "$work/vs" >/dev/null || return 1
    done
}

on_board() { # KERNEL FIELD
    jq -r --arg g "$SWEEP_GROUP" --arg k "$1" ".[] | select(.group == \$g) | .kernels[\$k].$2 // empty" "$board"
}

# The fastest candidate that holds on fresh seeds; one that does not is wrong, and the log says so.
find_champion() {
    local candidate
    champion=
    for candidate in $(jqf evo/fastest -r "$tried"); do
        if confirmed "$candidate"; then
            champion=$candidate
            return
        fi
        [[ -s $work/confirm ]] || return 0
        echo "evo_sweep.sh: $kernel $candidate does not hold on fresh seeds:" \
            "$(jq -r '"\(.status) \(.reason // "")"' "$work/confirm")" >&2
        append "$(jqf evo/withdrawn -cs --slurpfile record "$work/confirm" --slurpfile tried "$tried" \
            --arg knobs "$candidate" "$log")"
    done
}

# The key of this kernel's tile as it is today; what was never measured is measured now.
key_of() { # KNOBS -> $key
    local line
    key=$(jq -r --arg knobs "$1" '[.[] | select(.knobs == $knobs and .key != null)][0].key // empty' "$tried")
    [[ -z $key ]] || return 0
    line=$(scripts/evo_sweep.sh --measure "$kernel" "$1" "$log" "${explore[@]}")
    key=$(jq -r '.key // empty' <<<"$line")
    jq -e '.known or .lost' <<<"$line" >/dev/null || append "$line"
}

# The sources that are compiled today, by kernel: a time of an older one is stale.
sources_now() {
    local name
    for name in $(jq -rs --arg g "$SWEEP_GROUP" 'map(select(.group == $g) | .kernel) | unique | .[]' "$log"); do
        rm -f "$work/source"
        "$FA_BENCH" "$(kernel_flag "$name")" "${name#source:}" "${problem_options[@]}" --compile-only \
            --arch "$SWEEP_ARCH" --quiet --json "$work/source" 2>/dev/null || true
        [[ ! -s $work/source ]] || jq -c --arg k "$name" '{($k): .provenance.source_sha256}' "$work/source"
    done
}

update_board() {
    local holder leader entry
    exec 8>"$out/.board.lock"
    flock 8 # held to the end: two sweeps compare with the same incumbent one after the other
    if [[ -e $board ]] && ! jqf evo/is_board -es "$board" >/dev/null 2>&1; then
        mv "$board" "$board.corrupt"
        echo "evo_sweep.sh: $board is no leaderboard: set aside as $board.corrupt" >&2
    fi
    [[ -e $board ]] || echo '[]' | replace "$board"
    find_champion
    if [[ -n $champion ]]; then
        : >"$work/vs"
        holder=$(on_board "$kernel" knobs)
        if [[ -n $holder && $holder != "$champion" ]] && ! beats "$kernel" "$champion" "$kernel" "$holder"; then
            cp "$work/confirm" "$work/challenger"
            if confirmed "$holder"; then
                champion=$holder
            else # the incumbent's edited source is wrong on fresh seeds
                mv "$work/challenger" "$work/confirm"
            fi
        fi
        key_of "$champion"
        entry=$(jqf evo/entry -cs --arg key "$key" --slurpfile full "$work/confirm" \
            --slurpfile vs "$work/vs" "$log")
        jqf evo/with_entry --arg group "$SWEEP_GROUP" --arg kernel "$kernel" --argjson entry "$entry" "$board" \
            >"$work/board"
        replace "$board" <"$work/board"
        leader=$(jq -r --arg g "$SWEEP_GROUP" '.[] | select(.group == $g) | .leader' "$board")
        if [[ $leader != "$kernel" ]] && beats "$kernel" "$champion" "$leader" "$(on_board "$leader" knobs)"; then
            jq --arg g "$SWEEP_GROUP" --arg k "$kernel" 'map(if .group == $g then .leader = $k else . end)' "$board" \
                >"$work/board"
            replace "$board" <"$work/board"
        fi
    fi
    jqf evo/top -s --arg group "$SWEEP_GROUP" --slurpfile sources <(sources_now) "$log" >"$work/best"
    replace "$best" <"$work/best"
    flock -u 8
}

print_best() {
    local line='"\(.p50_us * 100 | round / 100) us  \(.kernel) \(.knobs)  regs \(.registers) smem \(.smem_bytes)"'
    [[ ! -s $best ]] || jq -r ".[] | $line" "$best"
}
