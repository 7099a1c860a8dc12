# shellcheck shell=bash disable=SC2034,SC2154 # tables and settings are of scripts/ci_gate.sh
# What the gate is about, and on which device. Sourced by scripts/ci_gate.sh.

# The kernels, libraries or file that were asked for, in the array `kernels`; in `only`, too, when it is not every
# kernel of the registry: then the emulator's own conformance is no part of it.
choose_subjects() {
    local name what runs m
    registry=$("$bench" --list-kernels --json -)
    while read -r name what runs m; do
        kind["$name"]=$what emulated["$name"]=$runs rows["$name"]=$m
    done < <(jq -r '.[] | "\(.name) \(.kind) \(.emulated) \(.defaults.m // 64)"' <<<"$registry")
    mapfile -t kernels < <(jq -r '.[] | select(.variant_of == null) | .name' <<<"$registry")
    mapfile -t only < <(values_of kernel)
    for name in "${only[@]}"; do kernel_exists "$name" || die 2 "no kernel $name"; done
    source=${opt[source]}
    if [[ -n $source ]]; then
        only=("$(basename "$source" .cu)")
        [[ $matrix -eq 0 ]] || kind["${only[0]}"]=hand
    fi
    mapfile -t libraries < <(values_of library)
    [[ ${#libraries[@]} -eq 0 ]] || choose_libraries
    [[ ${#only[@]} -eq 0 ]] || kernels=("${only[@]}") conform=0
    [[ $matrix -eq 1 ]] || kernels=()
    [[ -z $typed ]] || keep_serving
}
# What does not compile for the element type is left out: the compiler's sentence is the reason. Asked for by name, it
# is NOT-RUN.
keep_serving() {
    local name serving=() asked why code
    for name in "${kernels[@]}"; do
        code=0
        subject "$name"
        # shellcheck disable=SC2086
        why=$("$bench" "${asked[@]}" $typed --compile-only --arch sm_90a --quiet 2>&1 >/dev/null) || code=$?
        [[ $code -ne 3 || ${#only[@]} -eq 0 ]] || die 4 "NOT-RUN: $why"
        [[ $code -eq 3 ]] || serving+=("$name")
    done
    kernels=("${serving[@]}")
}
choose_libraries() {
    local file
    [[ ${#only[@]} -eq 0 ]] || die 2 "--library and --kernel are two gates"
    [[ $conform -eq 1 && $matrix -eq 1 ]] ||
        die 2 "--library goes over the matrix alone: no --sanitize, --race, --conform"
    for file in "${libraries[@]}"; do
        { is_input "$file" && [[ $file != *'|'* ]]; } || die 2 "--library takes a file that can be read, not '$file'"
    done
    only=("${libraries[@]/#/library:}")
}

# The GPU, unless there is none or the race detector is asked for; then the emulator. And how much is drawn there.
choose_device() {
    local probe
    probe=$(gpu_probe "$bench")
    gpu=0
    device_name=$(jq -r 'select(.status != "not_run") | .device.name // empty' <<<"$probe")
    [[ $race -ne 0 || -z $device_name ]] || gpu=1
    device=emu sm_count=4 arch=89 # the emulator's, of src/emu/device.c
    mode=plain draws=12
    if [[ $gpu -eq 1 ]]; then
        device=cuda draws=60
        read -r sm_count arch < <(
            jq -r '"\(.device.sm_count // 132) \(.device.arch // "sm_90" | ltrimstr("sm_"))"' <<<"$probe")
    fi
    [[ $race -eq 0 ]] || mode=race draws=6
    [[ $sanitize -eq 0 ]] || mode=sanitize draws=4
    [[ ${opt[draws]} == -1 ]] || draws=${opt[draws]}
    seed=1
    [[ $mode != plain ]] || seed=$EPOCHSECONDS
    [[ ${opt[seed]} == -1 ]] || seed=${opt[seed]}
    emu_note=""
    [[ $device == cuda || $race -eq 1 ]] || emu_note="NOT-RUN on a GPU: none here; emulator matrix only"
}
note() { # TEXT: one more thing that did not run
    emu_note="$emu_note${emu_note:+; }$1"
}

# What a file of one's own serves, where that is not every dim with both masks: options of problems.py, into the array
# `serves`. Problems are made for it; else only those would run that happen to fit. Asks the compiler, where there is
# one: a kernel refuses by a static_assert, its shared memory or its registers.
choose_served() {
    local asked refused taken mask
    serves=()
    [[ -n $source ]] || return 0
    subject "$source"
    refused=$(printf -- '--dim %s\n' 16 40 104 256 '16 --causal' '40 --causal' '104 --causal' '256 --causal' |
        statuses | grep -c infeasible || true)
    [[ $refused -ne 0 ]] || return 0
    for mask in '' --causal; do
        taken=$(printf -- "--dim %s $mask\n" 16 24 32 40 48 64 72 80 96 112 128 160 192 224 256 | statuses |
            awk '$3 != "infeasible" {print $1}')
        [[ -z $taken ]] || break
    done
    [[ -n $taken ]] || return 0
    serves=(--dims "$(paste -sd, <<<"$taken")")
    if [[ -n $mask ]]; then
        serves+=(--mask causal)
    elif echo "--dim ${taken%%$'\n'*} --causal" | statuses | grep -q infeasible; then
        serves+=(--mask full)
    fi
}
statuses() { # of compiling the file for each line of options: DIM CAUSAL STATUS
    # shellcheck disable=SC2086
    { "$bench" "${asked[@]}" $typed --compile-only --quiet --runs - --json - 2>/dev/null || true; } |
        jq -r '"\(.problem.dim) \(.problem.causal) \(.status)"'
}

subject() { # KERNEL: what the bench is asked for, into the array `asked`
    asked=(--kernel "$1")
    [[ $1 != library:* ]] || asked=(--library "${1#library:}")
    [[ -z $source ]] || asked=(--source "$source" "${more[@]}")
}

of() { # KERNEL EXPRESSION: something of its row
    jq -r --arg k "$1" ".[] | select(.name == \$k) | $2" <<<"$registry"
}
