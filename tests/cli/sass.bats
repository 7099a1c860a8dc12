#!/usr/bin/env bats
# Proof of tensor cores: the machine code of every kernel that claims them has the instruction.
load helper

disassembler() {
    command -v nvdisasm || ls build/tools/py/nvidia/cu13/bin/nvdisasm 2>/dev/null
}

# The cubin of a configuration, out of the cache.
cubin_of() { # OPTIONS...
    ./fa_bench "$@" --compile-only --json "$work/r.json" --quiet || return 1
    local sums
    sums=$(grep -l "$(jq -r .provenance.cubin_sha256 "$work/r.json")" "$XDG_CACHE_HOME"/fa_bench/*/sums | head -n 1)
    echo "$(dirname "$sums")/module.cubin"
}

instructions_are_as_claimed() { # ARCH CONDITION
    disassemble=$(disassembler) || skip "no nvdisasm"
    ./fa_bench --kernel light --compile-only --quiet || skip "no CUDA compiler"
    ./fa_bench --list-kernels --json - >"$work/kernels.json"
    local rows='.[] | select(.kind == "hand" and .missing == null)'
    for kernel in $(jq -r "$rows | select($2) | .name" "$work/kernels.json"); do
        claim=$(jq -r --arg k "$kernel" '.[] | select(.name == $k) | .tensor_cores' "$work/kernels.json")
        [[ $claim == wgmma && $1 == sm_89 ]] && continue
        own=$(jq -r --arg k "$kernel" '.[] | select(.name == $k) |
            "--op \(.op)" + if .dtype then " --dtype \(.dtype)" else "" end' "$work/kernels.json")
        own+=" $(dims_of "$kernel" $own)"
        "$disassemble" "$(cubin_of --kernel "$kernel" --arch "$1" $own)" >"$work/sass" || return 1
        grep -q 'EXIT' "$work/sass" || { echo "nothing disassembled for $kernel"; return 1; }
        hmma=$(grep -c '[HQ]MMA\.' "$work/sass" || true) hgmma=$(grep -c '[HQ]GMMA\.' "$work/sass" || true) # Q: FP8
        case $claim in
            none) [[ $hmma -eq 0 && $hgmma -eq 0 ]] ;;
            wgmma) [[ $hgmma -gt 0 ]] ;;
            *) [[ $hmma -gt 0 ]] ;;
        esac || { echo "$kernel claims $claim on $1; found $hmma HMMA, $hgmma HGMMA"; return 1; }
    done
    [ -n "$kernel" ]
}

@test "tensor-core instructions are in the machine code, and only where claimed" {
    instructions_are_as_claimed sm_89 '.tensor_cores == "none" or .tensor_cores == "wmma"'
}

# bats test_tags=slow
@test "the same of every kernel, for both architectures" {
    instructions_are_as_claimed sm_89 true
    instructions_are_as_claimed sm_90a true
}
