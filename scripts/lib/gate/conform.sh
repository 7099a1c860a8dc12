# shellcheck shell=bash disable=SC2034,SC2154 # tables and settings are of scripts/ci_gate.sh
# Conformance and speed: what the gate compares beside right results. Sourced by scripts/ci_gate.sh.

# Conformance: what a primitive gives in tests/emu/conform, and inline PTX in tests/emu/ptx and, of sm_90a, in
# tests/emu/hopper, word for word, on the emulator and here.
conformance() {
    local file name side files=(tests/emu/conform/*.cu tests/emu/ptx/*.cu)
    [[ ${arch:-} != 90* ]] || files+=(tests/emu/hopper/conform_*.cu)
    for file in "${files[@]}"; do
        name=$(conform_name "$file")
        for side in emu cuda; do
            at_once words "$file" $side "$out/records/$name.$side"
        done
    done
    wait
    for file in "${files[@]}"; do
        name=$(conform_name "$file")
        jqf gate/conform_case -nc --arg name "$name" \
            --arg emu "$(sha256 "$out/records/$name.emu")" --arg cuda "$(sha256 "$out/records/$name.cuda")" \
            --arg emu_text "$(head -c 400 "$out/records/$name.emu.txt")" \
            --arg cuda_text "$(head -c 400 "$out/records/$name.cuda.txt")"
    done
}
conform_name() { # FILE: its name, for inline PTX with ptx_ before it, of sm_90a with hopper_
    local name
    name=$(basename "$1" .cu)
    [[ $1 != */ptx/* ]] || name=ptx_$name
    [[ $1 != */hopper/* ]] || name=hopper_${name#conform_}
    echo "$name"
}
words() { # FILE emu|cuda TO: what a kernel wrote; nothing where it failed its own comparisons
    # 2: the random schedule
    FA_HOME=${FA_HOME:-$PWD} "$emu_case" "$1" --device "$2" --schedule 2 --out "$3" >"$3.txt" 2>&1 || rm -f "$3"
}
sha256() { if [[ -e $1 ]]; then sha256sum "$1" | cut -d' ' -f1; fi; }
compare_words() {
    local why="no GPU"
    if [[ $gpu -eq 1 && -x $emu_case ]]; then
        conformance >>"$cases"
        jqf gate/conform -s --arg gpu "$device_name" "$cases" >"$out/conform.json"
    else
        [[ $gpu -eq 0 ]] || why="no $emu_case: make test-binaries"
        note "NOT-RUN: conformance ($why)"
    fi
}

# Speed: each row of the baseline is a ratio by --vs that has to hold to within 3 %.
compare_speed() {
    local baseline row kernel
    baseline=evidence/$(gpu_folder "$device_name")/gate_baseline.json
    if [[ -n $typed ]]; then
        note "NOT-RUN: speed (the baseline is of FP16)"
        return
    fi
    if [[ $gpu -eq 0 || ! -e $baseline ]]; then
        note "NOT-RUN: speed (no baseline for this device)"
        return
    fi
    while read -r row; do
        kernel=$(jq -r .kernel <<<"$row")
        [[ ${#only[@]} -eq 0 || " ${only[*]} " == *" $kernel "* ]] || continue
        speed_case "$kernel" "$row" >>"$cases"
    done < <(jq -c '.[]' "$baseline")
}
speed_case() { # KERNEL ROW
    local vs args least code=0
    vs=$(jq -r .vs <<<"$2") args=$(jq -r .args <<<"$2") least=$(jq -r .ratio <<<"$2")
    echo '{}' >"$out/speed.json"
    # shellcheck disable=SC2086
    "$bench" --kernel "$1" --vs "$vs" $args --quiet --json "$out/speed.json" >"$out/speed.txt" 2>&1 </dev/null ||
        code=$?
    jqf gate/speed_case -c --arg kernel "$1" --arg args "--vs $vs $args" --argjson least "$least" \
        --argjson code "$code" "$out/speed.json"
}
