# shellcheck shell=bash disable=SC2034,SC2154 # tables and settings are of scripts/ci_gate.sh
# --resume: cases that an earlier run has settled with the same machine code. Sourced by scripts/ci_gate.sh.

# What each case is made with: the machine code of a kernel; of a library its version and the sources around it, as
# "VERSION.SHA".
declare -A key
code_keys() {
    local kernel arch version number library_sources
    mkdir -p "$out/keys"
    arch=$(gpu_probe "$bench" | jq -r '.ptxas.arch // .device.arch // empty') # sm_90a of an sm_90
    library_sources=$(cat src/cuda/cu* src/cuda/softmax.cu 2>/dev/null | sha256sum | cut -d' ' -f1)
    for kernel in "${kernels[@]}"; do
        if [[ ${kind[$kernel]} == library ]]; then
            at_once library_key "$kernel" "$library_sources"
        else
            at_once kernel_keys "$kernel" "$arch"
        fi
    done
    wait
    running=0
    while read -r number version; do key[$number]=$version; done < <(cat "$out"/keys/*.keys)
}
of_kernel() { awk -F'|' -v k="$1" '$1 == k {print NR "|" $0}' "$list"; }
library_key() { # KERNEL SHA
    local version number
    version=$(gpu_probe "$bench" --kernel "$1" | jq -r '.provenance.compiler // empty')
    of_kernel "$1" | while IFS='|' read -r number _; do echo "$number ${version// /_}.$2"; done >"$out/keys/$1.keys"
}
kernel_keys() { # KERNEL ARCH
    of_kernel "$1" | awk -F'|' '!($4 in seen) {seen[$4] = 1; print $4}' >"$out/keys/$1.runs"
    local asked
    subject "$1"
    "$bench" "${asked[@]}" --compile-only ${2:+--arch "$2"} --quiet --runs "$out/keys/$1.runs" \
        --json "$out/keys/$1.jsonl" >/dev/null 2>&1 || true
    jq -r '[.provenance.line, .provenance.code_sha256 // "none"] | @tsv' "$out/keys/$1.jsonl" 2>/dev/null |
        awk -F'\t' 'NR == FNR {args[NR] = $0; next} {print args[$1] "|" $2}' "$out/keys/$1.runs" - >"$out/keys/$1.codes"
    of_kernel "$1" | awk -F'|' 'NR == FNR {code[$1] = $2; next} {print $1, ($4 in code ? code[$4] : "none")}' \
        "$out/keys/$1.codes" - >"$out/keys/$1.keys"
}
take_over() { # FILE: what an earlier run has settled
    local number
    declare -A settled
    while IFS=$'\t' read -r what line; do
        settled[$what]=$line
    done < <(jqf gate/settled -r --arg gpu "$device_name" "$1")
    for ((number = 1; number <= ${#lines[@]}; number++)); do
        line=${settled["${lines[number - 1]} ${key[$number]:-none}"]:-}
        [[ -z $line ]] || echo "$line" >"$out/records/$number.case"
    done
    echo "$(find "$out/records" -name '*.case' | wc -l) of ${#lines[@]} cases are those of $resume"
}
