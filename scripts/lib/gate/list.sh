# shellcheck shell=bash disable=SC2034,SC2154 # tables and settings are of scripts/ci_gate.sh
# The cases of the gate, a line each: KERNEL|TOOL|OPTIONS. Sourced by scripts/ci_gate.sh.

# Derived and drawn: each rule of the registry that can match here with both masks, each class of fault, then draws.
derived() { # KERNEL M
    local of_rules=()
    [[ -n $source || $1 == library:* ]] || of_rules=(--kernel "$1" --registry /dev/stdin)
    python3 scripts/lib/gate/problems.py list --device "$device" --mode "$mode" --sm-count "$sm_count" \
        --arch "$arch" --m "$2" --draws "$draws" --seed "$seed" "${serves[@]}" "${of_rules[@]}" <<<"$registry"
}

# Listed problems that every kernel serves on a GPU: one line each, "m" is the kernel's own row tile.
problems() { # KERNEL M
    local m=$2 causal seq dim dist
    [[ $gpu -eq 1 ]] || return 0
    for causal in "" --causal; do
        for seq in 1 $((m - 1)) "$m" $((m + 1)) 113 129 799 1023 1024; do
            [[ $seq -gt 0 ]] && echo "--batch 2 --heads 4 --kv-heads 2 --seq $seq $causal"
        done
        echo "--batch 1 --heads 8 --kv-heads 1 --seq 129 --seq-kv 799 --dim 128 $causal"
        echo "--batch 1 --heads 3 --seq 799 --seq-kv 129 $causal"
        echo "--batch 1 --heads 2 --seq 1 --seq-kv 1024 --dim 128 $causal"
        echo "--batch 2 --heads 3 --seq 1024 --dim 128 $causal"
        echo "--batch 1 --heads 3 --seq 1023 --dim 256 $causal"
    done
    # Longer than the scores that a library keeps at once: in pieces, of several heads and of a part of one.
    [[ ${kind[$1]:-} != library ]] || printf '%s\n' "--batch 1 --heads 3 --seq 16384 --seeds 1" \
        "--batch 1 --heads 8 --kv-heads 1 --seq 16384 --causal --seeds 1"
    for dim in 16 24 40 72 80 96 120 128 160 192 248 256; do
        echo "--batch 1 --heads 2 --seq 129 --dim $dim --causal"
    done
    for dist in uniform outlier sharp rising falling needle constant-v coded; do
        echo "--batch 2 --heads 2 --seq 513 --dist $dist"
        echo "--batch 2 --heads 2 --seq 513 --dim 128 --causal --dist $dist"
    done
    echo "--batch 1 --heads 2 --seq 129 --misalign 1"
    echo "--batch 1 --heads 2 --seq 129 --dim 72 --misalign 4 --causal"
}

# Under a sanitizer: the edges of the matrix in sequences of a few tiles, and other code than the default tile's.
sanitize_problems() { # KERNEL M
    local causal knob value
    for causal in "" --causal; do echo "--batch 2 --heads 3 --seq 129 --dim 64 $causal"; done
    for causal in "" --causal; do echo "--batch 1 --heads 2 --kv-heads 1 --seq 113 --seq-kv 257 --dim 128 $causal"; done
    echo "--batch 1 --heads 3 --seq 199 --seq-kv 65 --dim 72 --causal" # rows without keys
    [[ ${kind[$1]} != library ]] || return 0 # of a library one kernel is ours, the softmax between its products
    echo "--batch 1 --heads 2 --seq $(($2 + 1)) --dim 40"
    echo "--batch 1 --heads 2 --seq 65 --dim 256 --causal"
    # more blocks than multiprocessors: the tiles for a full device
    echo "--batch 1 --heads 150 --seq 65 --dim 64 --causal"
    echo "--batch 1 --heads 150 --kv-heads 50 --seq 33 --dim 256"
    echo "--batch 1 --heads 2 --seq 1 --seq-kv 71 --dim 128"
    echo "--batch 1 --heads 2 --kv-heads 1 --seq 33 --dim 16 --misalign 1"
    echo "--batch 1 --heads 2 --seq $(($2 - 1 > 0 ? $2 - 1 : 1)) --dim 248 --dist rising --misalign 4 --causal"
    for knob in stages swizzle splits acc; do
        for value in $(of "$1" ".values.$knob // [] | if length > 1 then .[] else empty end"); do
            [[ $value == "$(of "$1" ".defaults.$knob")" ]] ||
                echo "--batch 1 --heads 2 --seq 113 --seq-kv 300 --dim 64 --causal --$knob $value"
        done
    done
}

# Under the sanitizers: problem by problem, so that a run that is cut off has tried every kernel.
list_sanitized() { # KERNEL M: each problem under each tool, its number before it
    {
        sanitize_problems "$1" "$2"
        [[ ${kind[$1]} == library ]] || derived "$1" "$2"
    } | awk -v quick="$quick" -v typed="$typed" -v kernel="$1" '!quick || NR % 5 == 1 {
        for (i = split("initcheck synccheck racecheck memcheck", tool); i > 0; i--)
            print NR "|" kernel "|" tool[i] "|" typed "--seeds 1 --timeout 500 " $0}'
}
list_plain() { # KERNEL M
    local extra=
    [[ $race -eq 0 ]] || extra="--race --schedule random --seeds 1 "
    { derived "$1" "$2"; problems "$1" "$2"; } |
        awk -v quick="$quick" -v start="$1||$typed$extra" '!quick || NR % 5 == 1 {print start $0}'
    [[ $race -eq 1 || $quick -eq 1 || $1 == library:* || ${kind[$1]:-} == library ]] || list_memory "$1" "$2"
}
# What a result need not show, on the emulator, which says where: races, reads outside the tensors, reads of several
# elements at an address that is a multiple of one, and offsets that overflow.
list_memory() { # KERNEL M
    local options
    [[ -n $source || ${emulated[$1]:-} == true ]] || return 0
    python3 scripts/lib/gate/problems.py list --mode memory --m "$2" "${serves[@]}" | while read -r options; do
        echo "$1|race|$typed--race --schedule random $options"
        echo "$1|address|$typed--sanitize address $options"
        echo "$1|undefined|$typed--sanitize undefined --misalign 1 $options"
    done
    python3 scripts/lib/gate/problems.py list --mode undefined "${serves[@]}" | while read -r options; do
        echo "$1|undefined|$typed--sanitize undefined $options"
    done
}
# Of a file of one's own: BF16 where it serves that, and more blocks than a kernel of the registry would finish on the
# emulator.
list_own() { # KERNEL M
    [[ -n $source && $race -eq 0 && $quick -eq 0 && -z $typed ]] || return 0
    python3 scripts/lib/gate/problems.py list --mode own --m "$2" "${serves[@]}" | sed "s/^/$1||/"
}
value_of_m() { # the row tile among the options of --source, or the bench's default
    local i m=64
    for ((i = 0; i + 1 < ${#more[@]}; i++)); do
        [[ ${more[i]} != --m ]] || m=${more[i + 1]}
    done
    echo "$m"
}
list_cases() {
    local kernel m
    for kernel in "${kernels[@]}"; do
        [[ -n $source || $device != emu || ${emulated[$kernel]:-} == true ]] || continue
        m=${rows[$kernel]:-64}
        [[ -z $source ]] || m=$(value_of_m)
        if [[ $sanitize -eq 1 ]]; then
            list_sanitized "$kernel" "$m"
        else
            list_plain "$kernel" "$m"
            list_own "$kernel" "$m"
        fi
    done | if [[ $sanitize -eq 1 ]]; then sort -n -t'|' -s -k1,1 | cut -d'|' -f2-; else cat; fi
}
