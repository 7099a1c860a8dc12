#!/usr/bin/env bats
# A kernel of one's own with inline PTX, on the emulator.
load helper

# The forty-line example with its exponential and its store by inline PTX; LINE: what else stands before the store.
inline_kernel() { # LINE...
    local power='__device__ float power(float x)\n{\n    float y;\n' line code=''
    power+='    asm("ex2.approx.ftz.f32 %0, %1;" : "=" "f"(y) : "f"(x * 1.4426950f));\n    return y;\n}\n'
    sed -e "s|^extern \"C\" __global__|$power&|" \
        -e 's/__expf(/power(/g; s/expf(/power(/g' examples/plain.cu >"$work/k.cu"
    for line in "$@"; do code+="\\n\\1$line"; done
    [[ $# -eq 0 ]] || sed -i "s|^\( *\)float m = .*|&$code|" "$work/k.cu"
}

@test "a kernel with inline asm runs on the emulator" {
    inline_kernel
    grep -q 'power(' "$work/k.cu"
    ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"'
}

@test "an instruction it does not have is not_run, with its text and line" {
    inline_kernel 'asm volatile("pmevent 7;");'
    local line
    line=$(grep -n pmevent "$work/k.cu" | cut -d: -f1)
    run ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --json "$work/r.json"
    record_holds "$work/r.json" '.status == "not_run"' '.reason | test("pmevent 7")' ".reason | test(\"k.cu:$line\")"
}

@test "a race made by inline st.shared and ld.shared is found" {
    inline_kernel '__shared__ float one_s[FA_M]; float one = 1; unsigned at = __cvta_generic_to_shared(one_s);' \
        'asm volatile("st.shared.f32 [%0], %1;" :: "r"(at + threadIdx.x * 4), "f"(one));' \
        'asm volatile("ld.shared.f32 %0, [%1];" : "=f"(one) : "r"(at + (threadIdx.x + 5) % FA_M * 4));' \
        'if (one == 2.0f) return;'
    run -1 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --race --json "$work/r.json"
    local line
    line=$(grep -n 'ld.shared.f32' "$work/k.cu" | cut -d: -f1)
    record_holds "$work/r.json" '.status == "wrong"' '.reason | test("data race")' ".reason | test(\"k.cu:$line\")"
}

@test "an overflow by inline PTX is found by --sanitize address" {
    inline_kernel 'const size_t end = (size_t)p.batch * p.heads * p.seq_q * p.dim;' \
        'asm volatile("st.global.b16 [%0], 0;" :: "l"((half *)p.o + end));'
    local line
    line=$(grep -n 'st.global.b16' "$work/k.cu" | cut -d: -f1)
    run -1 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --sanitize address --json "$work/r.json"
    record_holds "$work/r.json" '.reason | test("AddressSanitizer: use-after-poison")' ".reason | test(\"k.cu:$line\")"
}

@test "the page of what is supported has every instruction of the table once" {
    local page name
    page=$("${BUILD:-build}"/tests/emu/ptx_table)
    while read -r name; do
        [ "$(grep -c "^| \`$name\` |" <<<"$page")" -eq 1 ]
    done < <(sed -n 's/^FA_PTX([A-Z0-9]*, "\([a-z0-9]*\)".*/\1/p' src/ptx/instructions.def)
    [ "$(grep -c '^| `' <<<"$page")" -eq "$(grep -c '^FA_PTX(' src/ptx/instructions.def)" ]
}
