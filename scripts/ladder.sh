#!/usr/bin/env bash
# The ladder: every rung at its own best tile against the rung below it at its own, then the libraries against the top.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/ladder.sh [options]
  --out DIR         DIR/ladder/PROBLEM/KERNEL.json, DIR/ladder.json (default build/ladder)
  --problems LIST   B,H,S,D separated by spaces (default "2,8,512,64 4,16,1024,64 4,16,4096,128")
  --kernels LIST    measure only these rungs and libraries, separated by commas; the records of the others stay (default: all)
  --search SEC      for the tile of a rung on a problem, at most (default 3; 0: its tile in --start, else what its rules give)
  --start FILE      tiles that did well before, as rows of a ladder.json (default DIR/ladder.json)
  --max-time SEC    of sampling per step (default 1)
  --seconds SEC     start no step after so long (default 0: no limit)
  --dry-run         print the steps, do nothing
A rung's tile: the one its rules give, those of --start and its best on the problem before, the leader of DIR/leaderboard.json,
then, while that gains 1 %, the neighbours of the best in the registry's space: one step of m, n, warps or stages, or of m and
warps together. What was tried is in KERNEL.tiles.jsonl. The highest rungs are measured first.
A step that fails is said and left out. DIR/ladder.json is made anew after every step, so it holds what a run got to.
Exit: 0 done, 1 a step failed, 2 usage, 4 not run (no GPU). FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export bench=${FA_BENCH:-./fa_bench}
out=build/ladder problems="2,8,512,64 4,16,1024,64 4,16,4096,128" only='' search=3 start='' max_time=1 seconds=0 dry_run=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        --out | --problems | --kernels | --search | --start | --max-time | --seconds)
            [[ $# -ge 2 ]] || { echo "ladder.sh: $1 needs a value" >&2; exit 2; }
            case $1 in --out) out=$2 ;; --problems) problems=$2 ;; --kernels) only=$2 ;; --search) search=$2 ;;
                --start) start=$2 ;; --max-time) max_time=$2 ;; --seconds) seconds=$2 ;; esac
            shift
            ;;
        *) echo "ladder.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
    shift
done
[[ $search =~ ^[0-9]+$ && $seconds =~ ^[0-9]+$ ]] || { echo "ladder.sh: --search and --seconds take whole numbers" >&2; exit 2; }
[[ -x $bench ]] || { echo "ladder.sh: no $bench: run make" >&2; exit 4; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
registry=$("$bench" --list-kernels --json -)
mapfile -t rungs < <(jq -r '.[] | select(.variant_of == null and .kind == "hand") | .name' <<<"$registry")
mapfile -t libraries < <(jq -r '.[] | select(.kind == "library") | .name' <<<"$registry")
for name in ${only//,/ }; do
    [[ " ${rungs[*]} ${libraries[*]} " == *" $name "* ]] || { echo "ladder.sh: no rung or library '$name'" >&2; exit 2; }
done
arch=''
if [[ $dry_run -eq 0 ]]; then
    arch=$({ "$bench" --device cuda --seq 16 --seeds 1 --check cpu --timing none --quiet --json - 2>/dev/null || true; } | jq -r 'select(.status != "not_run") | .ptxas.arch // empty')
    [[ -n $arch ]] || { echo "ladder.sh: NOT-RUN: no GPU here" >&2; exit 4; }
fi

options_of() { # KNOBS: "m=64,n=128" as options
    sed -E 's/(^|,)([a-z]+)=/ --\2 /g' <<<"$1"
}
export -f options_of

# Knobs of a record, as --vs takes them; nothing when a variant served the run, whose tile is not the kernel's.
knobs_of() { # RECORD
    jq -r 'if .variant == .kernel then .config | to_entries | map("\(.key)=\(.value)") | join(",") else "" end' "$1"
}

# The neighbours of a tile, one a line.
neighbours() { # KERNEL KNOBS
    jq -r --arg k "$1" --arg knobs "$2" '.[] | select(.name == $k) | .values as $values |
        def move($knob; $by): ($values[$knob] // []) as $all | .[$knob] as $now | ($all | index($now)) as $i |
            if $i == null or $i + $by < 0 or $i + $by >= ($all | length) then empty else .[$knob] = $all[$i + $by] end;
        ($knobs | split(",") | map(split("=") | {(.[0]): (.[1] as $text | $text | tonumber? // $text)}) | add) |
        (("m", "n", "warps", "stages") as $knob | (1, -1) as $by | move($knob; $by)), ((1, -1) as $by | move("m"; $by) | move("warps"; $by)) |
        to_entries | map("\(.key)=\(.value)") | join(",")' <<<"$registry"
}

# shellcheck disable=SC2317 # called by the shells of xargs
compiles() { # KNOBS
    # shellcheck disable=SC2046,SC2086
    "$bench" --kernel "$kernel" --arch "$arch" $problem_options $(options_of "$1") --compile-only --quiet --json - 2>/dev/null |
        jq -e '.status == "pass" and .ptxas.spill_store_bytes == 0' >/dev/null && echo "$1"
    return 0
}
export -f compiles

# Of the tiles on standard input those that compile without spills; the timed runs find them in the cache.
compiling() {
    cat >"$work/asked"
    # shellcheck disable=SC2016 # expanded by the inner shell
    xargs -r -d '\n' -P "$(nproc)" -I{} bash -c 'compiles "$1"' _ {} <"$work/asked" >"$work/compiled"
    grep -xFf "$work/compiled" "$work/asked" || true
}

# Times the tiles on standard input while there is time; $best and $best_us become the fastest's.
try_all() { # TRIED
    local knobs us
    while read -r knobs; do
        [[ -z $best_us || $SECONDS -lt $deadline ]] || return 0
        ! grep -qF "{\"knobs\":\"$knobs\"" "$1" || continue
        # shellcheck disable=SC2046,SC2086
        "$bench" --kernel "$kernel" $problem_options $(options_of "$knobs") --seeds 1 --check cublas --timing graph --warmup-ms 50 --min-samples 5 \
            --max-time 0.05 --quiet --json "$work/tile.json" </dev/null >/dev/null 2>&1 || continue
        us=$(jq .timing.p50_us "$work/tile.json") knobs=$(knobs_of "$work/tile.json")
        jq -nc --arg knobs "$knobs" --argjson us "$us" '{knobs: $knobs, p50_us: $us}' >>"$1"
        if [[ -z $best_us ]] || jq -en --argjson a "$us" --argjson b "$best_us" '$a < 0.99 * $b' >/dev/null; then
            best_us=$us best=$knobs
        fi
    done
}

# Tiles of $kernel that did well before, all knobs named.
known_tiles() {
    jq -r --arg k "$kernel" --arg p "$problem" '.[] | select(.kernel == $k and .problem == $p and .tile) | .config | to_entries | map("\(.key)=\(.value)") | join(",")' \
        "$work/before.json" 2>/dev/null || true
    cat "$work/last.$kernel" 2>/dev/null || true
    jq -r --arg k "$kernel" --arg p "$problem" '($p | split(",") | "|\(.[0]),\(.[1]),\(.[1]),\(.[2]),\(.[2]),\(.[3]),full|fp32") as $group |
        [.[] | select(.group | contains($group))][0].kernels[$k].knobs // empty' "$out/leaderboard.json" 2>/dev/null || true
}

# The best tile of $kernel on $problem, in $best; empty: what the rules give.
find_tile() { # TRIED
    local deadline=$((SECONDS + search)) before=none
    best='' best_us=''
    if [[ $search -eq 0 ]]; then
        best=$(known_tiles | head -n 1)
        return 0
    fi
    : >"$1"
    try_all "$1" <<<""
    # No search where a variant serves the kernel, nor for a rung so slow that a launch is dear: a baseline.
    [[ -n $best ]] && jq -en --argjson us "$best_us" '$us < 50000' >/dev/null || return 0
    known_tiles | compiling >"$work/tiles"
    try_all "$1" <"$work/tiles"
    while [[ $best != "$before" && $SECONDS -lt $deadline ]]; do
        before=$best
        neighbours "$kernel" "$best" | compiling >"$work/tiles"
        try_all "$1" <"$work/tiles"
    done
    echo "$best" >"$work/last.$kernel"
}

summarise() {
    find "$out/ladder" -name '*.json' -print0 | sort -z | xargs -0 jq -s 'map({problem: (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)"), kernel, variant,
        arch: (.ptxas.arch // (.device.arch | values | if test("^sm_(9|1[0-9])[0-9]$") then . + "a" else . end)), config, tile: (.variant == .kernel and .config != null),
        p50_us: .timing.p50_us, p90_us: .timing.p90_us, tflops: .throughput.tflops, vs: .vs.kernel, ratio: .vs.ratio, ci95: .vs.ratio_ci95,
        method: .timing.method, sm_clock_mhz: .timing.sm_clock_mhz.p50, vs_config: .vs.config, vs_code_sha256: .vs.code_sha256,
        code_sha256: .provenance.code_sha256, git: .provenance.git})' >"$work/ladder.json"
    mv "$work/ladder.json" "$out/ladder.json"
}

# $kernel at its tile against OTHER at its own, or alone: a record in $folder.
step() { # [OTHER]
    local options=()
    read -ra options <<<"$problem_options $(options_of "${tiles[$kernel]:-}")"
    options=(--kernel "$kernel" "${options[@]}" --seeds 1 --timing graph --warmup-ms 200 --min-samples 6 --max-time "$max_time")
    [[ $# -eq 0 ]] || options+=(--vs "$1${tiles[$1]:+:${tiles[$1]}}")
    echo "fa_bench ${options[*]}"
    [[ $dry_run -eq 0 ]] || return 0
    "$bench" "${options[@]}" --quiet --json "$folder/$kernel.new" >/dev/null || { rm -f "$folder/$kernel.new"; return 1; }
    mv "$folder/$kernel.new" "$folder/$kernel.json"
    jq -r '"    \(.timing.p50_us * 10 | round / 10) us" + (if .vs then ", \(.vs.ratio * 1000 | round / 1000) over \(.vs.kernel)" else "" end)' "$folder/$kernel.json"
    summarise
}

# The step of $kernel over the nearest of the rungs below it, highest first, that runs.
climb() { # RUNGS...
    local other
    for other in "$@"; do
        step "$other" && return
    done
    [[ $# -gt 0 ]] || step || { echo "ladder.sh: $kernel failed"; return 1; }
    [[ $# -eq 0 ]] || { echo "ladder.sh: $kernel failed against each of $*"; return 1; }
}

asked() { # KERNEL
    [[ -z $only || ",$only," == *",$1,"* ]]
}

in_time() {
    [[ $seconds -eq 0 || $SECONDS -lt $seconds ]]
}

export arch problem_options kernel
start=${start:-$out/ladder.json}
[[ ! -e $start ]] || cp "$start" "$work/before.json"
failed=0
for problem in $problems; do
    IFS=, read -r b h s d <<<"$problem"
    problem_options="--batch $b --heads $h --seq $s --dim $d"
    folder=$out/ladder/${b}x${h}x${s}x${d}
    declare -A tiles=()
    broken=''
    if [[ $dry_run -eq 0 ]]; then
        mkdir -p "$folder"
        for kernel in "${rungs[@]}" "${libraries[@]}"; do
            ! asked "$kernel" || rm -f "$folder/$kernel.json"
        done
        for kernel in "${rungs[@]}"; do
            in_time || break
            if asked "$kernel"; then
                find_tile "$folder/$kernel.tiles.jsonl"
                [[ $search -eq 0 || -n $best_us ]] || broken+=" $kernel "
            else
                search=0 find_tile
            fi
            tiles[$kernel]=$best
        done
    fi
    downwards=()
    for kernel in "${rungs[@]}"; do
        if [[ $broken == *" $kernel "* ]]; then
            echo "ladder.sh: $kernel failed"
            failed=1
        else
            downwards=("$kernel" "${downwards[@]}")
        fi
    done
    for kernel in "${libraries[@]}"; do
        ! asked "$kernel" || ! in_time || climb "${downwards[@]}" || failed=1
    done
    for ((i = 0; i < ${#downwards[@]}; i++)); do
        kernel=${downwards[i]}
        ! asked "$kernel" || ! in_time || climb "${downwards[@]:i+1}" || failed=1
    done
done
in_time || { echo "ladder.sh: $seconds s were not enough for every step"; failed=1; }
exit "$failed"
