# shellcheck shell=bash disable=SC2034,SC2154 # tables and settings are of scripts/ci_gate.sh
# Conformance and speed: what the gate compares beside right results. Sourced by scripts/ci_gate.sh.

# Conformance: what a primitive gives in tests/emu/conform, and inline PTX in tests/emu/ptx and, of sm_90a, in
# tests/emu/hopper, word for word, on the emulator and here. Of the right kernels of tests/emu/hopper only that they
# pass on both: what they leave behind may depend on the order.
conformance() {
    local file number name side
    conformance_list >"$out/conform.list"
    while read -r file number name; do
        for side in emu cuda; do
            at_once words "$file" "$number" $side "$out/records/$name.$side"
        done
    done <"$out/conform.list"
    wait
    while read -r file number name; do
        jqf gate/conform_case -nc --arg name "$name" \
            --arg emu "$(sha256 "$out/records/$name.emu")" --arg cuda "$(sha256 "$out/records/$name.cuda")" \
            --arg emu_text "$(head -c 400 "$out/records/$name.emu.txt")" \
            --arg cuda_text "$(head -c 400 "$out/records/$name.cuda.txt")"
    done <"$out/conform.list"
}
conformance_list() { # lines "FILE NUMBER NAME"; the number is that of the case in a file of right kernels, else "-"
    local file name
    for file in tests/emu/conform/*.cu; do echo "$file - $(basename "$file" .cu)"; done
    for file in tests/emu/ptx/*.cu; do echo "$file - ptx_$(basename "$file" .cu)"; done
    [[ ${arch:-} == 90* ]] || return 0
    for file in tests/emu/hopper/conform_*.cu; do
        name=$(basename "$file" .cu)
        echo "$file - hopper_${name#conform_}"
    done
    for file in tests/emu/hopper/clean*.cu; do
        awk -v file="$file" -v name="hopper_$(basename "$file" .cu)" '
            /^#define CASES\(X\)/ {on = 1; sub(/.*CASES\(X\)/, "")}
            on {while (match($0, /X\([a-z_0-9]+\)/)) {
                print file, number++, name "_" substr($0, RSTART + 2, RLENGTH - 3)
                $0 = substr($0, RSTART + RLENGTH)}}
            on && !/\\$/ {exit}' "$file"
    done
}
words() { # FILE NUMBER emu|cuda TO: what a kernel wrote; nothing where it failed its own comparisons
    local asked=("$1" --device "$3" --schedule 2) # 2: the random schedule
    if [[ $2 == - ]]; then
        FA_HOME=${FA_HOME:-$PWD} "$emu_case" "${asked[@]}" --out "$4" >"$4.txt" 2>&1 || rm -f "$4"
    elif FA_HOME=${FA_HOME:-$PWD} "$emu_case" "${asked[@]}" --case "$2" >"$4.txt" 2>&1; then
        cp "$4.txt" "$4"
    fi
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
