#!/usr/bin/env bats
# Compiling without a GPU: figures, cache, knobs that change the code, nvcc agreeing with NVRTC.
load helper

needs_nvrtc() {
    ./fa_bench --kernel light --compile-only --quiet 2>"$work/err" ||
        { grep -q 'not_run' "$work/err" && skip "$(cat "$work/err")"; }
}

@test "figures for every architecture of the mission" {
    needs_nvrtc
    for arch in sm_80 sm_89 sm_90a sm_120; do
        ./fa_bench --kernel light --compile-only --arch $arch --json "$work/r.json" --quiet
        record_holds "$work/r.json" '.status == "pass"' '.device == null' ".ptxas.arch == \"$arch\"" \
            '.ptxas.registers > 0' '.ptxas.spill_store_bytes == 0' \
            '.ptxas.smem_total_bytes == .ptxas.smem_static_bytes + .ptxas.smem_dynamic_bytes' '.check == null'
    done
}

@test "every kernel that the gate runs on the emulator and on a GPU compiles for the GPU" {
    needs_nvrtc
    for arch in sm_80 sm_89 sm_90; do
        python3 -c "import sys; sys.path.insert(0, 'scripts/lib/gate'); import conform
print(*sorted({f'--source {file} --arch $arch' for _, file, _ in conform.conformance_list('$arch')}), sep='\n')"
    done >"$work/lines"
    [ "$(grep -c hopper "$work/lines")" -ge 8 ]
    sed -i 's/sm_90$/sm_90a/; /sm_8[09]/{/ptx/!d}' "$work/lines" # those of sm_80 and sm_89 that need not more
    ./fa_bench --runs "$work/lines" --compile-only --quiet
}

@test "a second run comes from the cache, an edited source does not" {
    needs_nvrtc
    export XDG_CACHE_HOME=$work/cache
    cp examples/plain.cu "$work/k.cu"
    ./fa_bench --source "$work/k.cu" --compile-only --json "$work/1.json" --quiet
    ./fa_bench --source "$work/k.cu" --compile-only --json "$work/2.json" --quiet
    sed -i 's/expf(/__expf(/g' "$work/k.cu"
    ./fa_bench --source "$work/k.cu" --compile-only --json "$work/3.json" --quiet
    record_holds "$work/1.json" '.provenance.cache_hit == false'
    record_holds "$work/2.json" '.provenance.cache_hit' \
        ".provenance.cubin_sha256 == $(jq .provenance.cubin_sha256 "$work/1.json")"
    record_holds "$work/3.json" '.provenance.cache_hit == false' \
        ".provenance.code_sha256 != $(jq .provenance.code_sha256 "$work/1.json")"
}

@test "a refused tile comes from the cache with the compiler's sentence; a damaged entry and an edited one do not" {
    needs_nvrtc
    export XDG_CACHE_HOME=$work/cache
    sed '/^FA_KERNEL_INFO/i static_assert(FA_M < 64, "k: M below 64");' examples/plain.cu >"$work/k.cu"
    refused_as() { # REASON CACHE_HIT
        run -3 ./fa_bench --source "$work/k.cu" --m 64 --compile-only --json "$work/r.json" --quiet
        record_holds "$work/r.json" ".reason == \"$1\" and .provenance.cache_hit == $2"
    }
    refused_as "k: M below 64" false
    refused_as "k: M below 64" true
    echo 'k: anything' >"$(echo "$work"/cache/fa_bench/*/refused)"
    refused_as "k: M below 64" false
    sed -i 's/FA_M < 64, "k: M below 64"/FA_M < 32, "k: M below 32"/' "$work/k.cu"
    refused_as "k: M below 32" false
    ./fa_bench --source "$work/k.cu" --m 16 --compile-only --quiet
}

@test "a knob that does nothing is said" {
    needs_nvrtc
    export XDG_CACHE_HOME=$work/cache # another test may have compiled this code under the same name
    sed 's/FA_M <= 1024/FA_M + FA_N > 0/' examples/plain.cu >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" --compile-only --quiet --n 32
    ./fa_bench --source "$work/k.cu" --compile-only --quiet --n 64 --json "$work/r.json"
    record_holds "$work/r.json" '.provenance.same_code_as | test("n=32")'
}

@test "--cubin writes the code that the record names, whole or not at all" {
    needs_nvrtc
    echo old >"$work/k.cubin"
    ./fa_bench --kernel light --m 16 --compile-only --arch sm_89 --cubin "$work/k.cubin" --json "$work/r.json" --quiet
    record_holds "$work/r.json" ".provenance.cubin_sha256 == \"$(sha256sum <"$work/k.cubin" | cut -d' ' -f1)\""
    ./fa_bench --kernel light --m 32 --device emu --compile-only --arch sm_89 --cubin "$work/other.cubin" --quiet
    [ -s "$work/other.cubin" ]
    run -1 cmp -s "$work/k.cubin" "$work/other.cubin"
    [ "$(find "$work" -name '*.tmp' | wc -l)" -eq 0 ]
    printf -- "--m 16 --cubin $work/a.cubin\n--m 32 --cubin $work/b.cubin\n" |
        ./fa_bench --runs - --kernel light --compile-only --arch sm_89 --quiet
    cmp "$work/a.cubin" "$work/k.cubin"
    cmp "$work/b.cubin" "$work/other.cubin"
    # A configuration that cannot be leaves what was there.
    run -3 ./fa_bench --kernel light --stages 7 --compile-only --cubin "$work/k.cubin" --quiet
    cmp "$work/a.cubin" "$work/k.cubin"
    refused 6 "fa_bench: error: cannot write /dev/full: No space left" ./fa_bench --kernel light \
        --compile-only --quiet --cubin /dev/full
    refused 6 "cannot write $work/none/k.cubin: No such file" ./fa_bench --kernel light \
        --compile-only --quiet --cubin "$work/none/k.cubin"
}

@test "--cubin where there is none is refused" {
    refused 2 "cublas is a library" ./fa_bench --kernel cublas --compile-only --cubin "$work/k.cubin"
    refused 2 "not with --device emu" ./fa_bench --kernel light --device emu --cubin "$work/k.cubin"
    refused 2 "--cubin with --runs belongs on a line" ./fa_bench --runs - --cubin "$work/k.cubin" <<<'--kernel light'
    refused 2 "line 1: --cubin takes a kernel that is compiled here" ./fa_bench --runs - \
        <<<"--kernel cudnn --cubin $work/k.cubin"
    if ! command -v nvidia-smi >/dev/null; then
        run -4 ./fa_bench --kernel light --seq 16 --seeds 1 --cubin "$work/k.cubin" --json "$work/r.json" --quiet
        record_holds "$work/r.json" '.status == "not_run"' '.reason | test("the emulator runs no cubin")'
    fi
    [ ! -e "$work/k.cubin" ]
}

@test "shared memory over the limit is infeasible, with the byte counts" {
    needs_nvrtc
    cat >"$work/big.cu" <<'EOF'
#include "fa_params.h"
FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 120000);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p) {}
EOF
    run -3 ./fa_bench --source "$work/big.cu" --compile-only --arch sm_89
    [[ $output == *"120000 bytes of shared memory per block against the limit of 101376 on sm_89"* ]]
    ./fa_bench --source "$work/big.cu" --compile-only --arch sm_90a --quiet
}

@test "a cache that cannot be written does not stop a run" {
    needs_nvrtc
    mkdir "$work/cache"
    : >"$work/cache/fa_bench" # a file where the folder should be: fails for root, too
    XDG_CACHE_HOME=$work/cache ./fa_bench --kernel light --compile-only --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"' '.provenance.cache_hit == false'
}

@test "the binary needs no CUDA library to start" {
    run ldd ./fa_bench
    [[ $output != *libcuda* && $output != *nvrtc* && $output != *cublas* && $output != *cudnn* ]]
}

@test "without a CUDA compiler the emulator still runs, and ptxas is null with the reason" {
    # LD_LIBRARY_PATH cannot hide a library; a private mount can, where we may make one.
    unshare -rm true 2>/dev/null || skip "no private mounts here"
    [[ -d /usr/local/cuda ]] || skip "no toolkit to hide"
    toolkit=$(readlink -f /usr/local/cuda)
    unshare -rm bash -c "mkdir -p '$work/empty' && mount --bind '$work/empty' '$toolkit' &&
        ./fa_bench --kernel light ${small[*]} --json '$work/r.json' --quiet"
    record_holds "$work/r.json" '.status == "pass"' '.ptxas == null' '.ptxas_reason | test("NVRTC")'
}

@test "every header of the kernels compiles alone" {
    local header tile info='.threads = 32, .serves = FA_FEATURES'
    for header in kernels/*/*.cuh; do
        tile='--m 128 --n 64 --warps 8 --splits 2'
        [[ $header != *backward* ]] || tile='--op backward --m 128 --n 128 --warps 12'
        [[ $header != kernels/wgmma/fp8* ]] || tile='--dtype e4m3 --m 128 --n 64 --warps 8'
        [[ $header != kernels/mma/backward* ]] || tile='--op backward --m 64 --n 128 --warps 8'
        printf '#include "%s"\nFA_KERNEL_INFO(%s);\nextern "C" __global__ void fa_kernel(fa_params p) {}\n' \
            "${header#kernels/}" "$info" >"$work/k.cu"
        ./fa_bench --source "$work/k.cu" --compile-only --arch sm_90a $tile --stages 2 --quiet ||
            { echo "$header"; false; }
    done
}

# bats file_tags=slow
@test "each knob a kernel has changes its code" {
    needs_nvrtc
    ./fa_bench --list-kernels --json - >"$work/kernels.json"
    for kernel in $(jq -r '.[] | select(.kind == "hand" and .missing == null) | .name' "$work/kernels.json"); do
        arch=sm_89
        jq -e --arg k "$kernel" '.[] | select(.name == $k) | .arch_specific' "$work/kernels.json" >/dev/null &&
            arch=sm_90a
        for knob in $(jq -r --arg k "$kernel" '.[] | select(.name == $k) | .values | to_entries[] |
            select(.value | length > 1) | .key' "$work/kernels.json"); do
            : >"$work/hashes"
            tried=0
            for value in $(jq -r --arg k "$kernel" --arg n "$knob" \
                '.[] | select(.name == $k) | .values[$n][]' "$work/kernels.json"); do
                if ./fa_bench --kernel "$kernel" --"$knob" "$value" --compile-only --arch $arch --dim 32 --quiet \
                    --json "$work/r.json" 2>"$work/err"; then
                    record_holds "$work/r.json" "(.config.$knob | tostring) == \"$value\"" \
                        '.provenance.same_code_as == null' || return 1
                    jq -r .provenance.code_sha256 "$work/r.json" >>"$work/hashes"
                    tried=$((tried + 1))
                fi
            done
            [[ $(sort -u "$work/hashes" | wc -l) -eq $tried ]] || {
                echo "$kernel: --$knob does nothing somewhere"
                return 1
            }
        done
    done
}

@test "nvcc agrees with NVRTC on registers and shared memory" {
    needs_nvrtc
    command -v nvcc >/dev/null || skip "no nvcc"
    for knobs in "scalar" "light" "light --m 32 --warps 8 --vec 4" "light --dim 128 --causal"; do
        ./fa_bench --kernel $knobs --compile-only --json "$work/a.json" --quiet
        ./fa_bench --kernel $knobs --compile-only --compiler nvcc --json "$work/b.json" --quiet
        record_holds "$work/b.json" ".ptxas == $(jq -c .ptxas "$work/a.json")" \
            '.provenance.compiler | test("^nvcc 1[0-9]")'
    done
}

# Tiles beside the limit: those whose products ptxas would serialize are refused, the last before them are not.
@test "wgmma refuses a tile whose registers are too few, in words, and takes the last before it" {
    compile() { ./fa_bench --arch sm_90a --compile-only --quiet --json "$work/r.json" --kernel "$@"; }
    compile wgmma_small || skip "no CUDA compiler"
    for tile in 'wgmma --m 64 --n 64 --warps 4 --dim 256' 'wgmma --m 64 --n 128 --warps 4 --dim 128' \
        'wgmma --m 128 --n 160 --warps 8 --dim 192' 'wgmma --m 192 --n 96 --warps 12 --dim 128' \
        'wgmma --m 256 --n 80 --warps 16' 'wgmma_small --n 64 --warps 12 --dim 192' \
        'wgmma_decode --n 128 --dim 256'; do
        refused 3 "fit the registers" compile $tile
    done
    for tile in 'wgmma --m 64 --n 160 --warps 4 --dim 128' 'wgmma --m 192 --n 80 --warps 12 --dim 128' \
        'wgmma --m 256 --n 64 --warps 16' 'wgmma_small --n 128 --warps 12' 'wgmma_decode --n 96 --dim 256'; do
        compile $tile --stages 1
        jq -e '.ptxas.warnings == []' "$work/r.json" || { echo "$tile"; return 1; }
    done
    compile wgmma --heads 16 --kv-heads 2 --seq 4 --page-size 16 --window 99,0 --causal --dim 256 # masks and pages
    jq -e '.variant == "wgmma_decode" and .config.m == 64 and .ptxas.spill_store_bytes == 0' "$work/r.json"
}
