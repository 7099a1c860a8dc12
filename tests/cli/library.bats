#!/usr/bin/env bats
# --library: host code in a shared object. tests/library/host_cuda.c is a libcuda without a GPU, so that loading,
# launching and judging run here; tests/library_gpu.sh does the same on a GPU.
load helper

build() { # SOURCE FILE OPTIONS...: a shared object
    gcc -O1 -shared -fPIC -Iinclude -Isrc -o "$work/$2" "tests/library/$1.c" "${@:3}" -ldl -lm
}

prepare() {
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0 # of tests/asan.sh: signals stay signals
    build stub stub.so
    build host_cuda libcuda.so.1
    stub=(--library "$work/stub.so" --batch 1 --heads 4 --kv-heads 2 --seq 33 --dim 16 --seeds 2 --check cpu)
    on_gpu=(env LD_LIBRARY_PATH="$work" ./fa_bench "${stub[@]}" --device cuda --quiet --timing none)
}

@test "a library is checked like a kernel, and the record says what it is" {
    "${on_gpu[@]}" --causal --seq-kv 40 --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' '.kernel == "stub"' '.config == null' '.launch == null' \
        '.library.name == "stub"' '.library.version == "1.2"' '.library.workspace_bytes == 64' \
        '.check.references[0].rows_checked == 264' '.check.repeats == 10' '.provenance.compiler == "stub 1.2"' \
        '.library.sha256 == "'"$(sha256sum <"$work/stub.so" | cut -d' ' -f1)"'"' \
        '.provenance.cubin_sha256 == .library.sha256'
    FA_STUB=context "${on_gpu[@]}" # the bench's context is current again, whatever the library left
}

@test "the log-sum-exp is asked of a library that writes it" {
    "${on_gpu[@]}" --lse --causal --seq-kv 20
    FA_STUB=no_lse refused 3 "stub does not write the log-sum-exp that --lse asks for" "${on_gpu[@]}" --lse
}

@test "a library is compared with a library" {
    cp "$work/stub.so" "$work/other,v2.so"
    FA_STUB=nameless "${on_gpu[@]}" --timing event --warmup-ms 0 --max-time 20 --vs "library:$work/other,v2.so" \
        --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' '.vs.kernel == "other,v2"' '.vs.config == null' '.vs.ratio == 1' \
        '.vs.library.name == "other,v2"' '.vs.library.version == null' '.vs.check.passed'
}

@test "what a library does wrong is found" {
    FA_STUB=wrong refused 1 "against cpu" "${on_gpu[@]}"
    FA_STUB=overwrites refused 1 "input k was overwritten: element 3" "${on_gpu[@]}"
    FA_STUB=wobbles refused 1 "not deterministic" "${on_gpu[@]}"
    FA_STUB=fails refused 6 "stub: fa_forward: the stub has no launch today" "${on_gpu[@]}"
    FA_STUB=nondeterministic "${on_gpu[@]}" --json "$work/r.json"
    record_holds "$work/r.json" '.library.nondeterministic' '.check.repeats == 10'
}

@test "a crash is the child's, a hang is killed, and the next run goes on" {
    FA_STUB=crash refused 6 "died of signal 11 (Segmentation fault) while checking" "${on_gpu[@]}"
    FA_STUB=crash_info refused 6 "died of signal 11 (Segmentation fault) while compiling" "${on_gpu[@]}"
    FA_STUB=hang refused 5 "killed after 5 s while checking" "${on_gpu[@]}" --timeout 5
    printf '%s\n' '--dim 24' '--dim 32' >"$work/runs"
    run -3 "${on_gpu[@]}" --runs "$work/runs" --json "$work/r.jsonl"
    [ "$(jq -r .status "$work/r.jsonl" | paste -sd' ')" = "infeasible pass" ]
}

@test "--jobs: several runs are on a GPU at a time; without it, and where --device does not name it, one" {
    export FA_STUB=meets FA_STUB_PIPE=$work/pipe
    mkfifo "$work/pipe"
    "${on_gpu[@]}" --runs - --jobs 2 <<<$'--dim 16\n--dim 32'
    run -5 "${on_gpu[@]}" --runs - --timeout 2 <<<$'--dim 16\n--dim 32'
    run -5 "${on_gpu[@]}" --runs - --timeout 2 --jobs 2 --device auto <<<$'--dim 16\n--dim 32'
}

@test "what a library cannot serve is infeasible in its words, with or without a GPU" {
    local words="stub: head dimension 24: multiples of 16 only"
    refused 3 "$words" "${on_gpu[@]}" --dim 24
    refused 3 "$words" ./fa_bench "${stub[@]}" --dim 24 --compile-only --quiet
    refused 3 "$words" ./fa_bench "${stub[@]}" --dim 24 --device emu --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "infeasible"' '.library.name == "stub"'
    refused 3 "sm_75 is older than sm_80" ./fa_bench "${stub[@]}" --arch sm_75 --compile-only --quiet
    refused 3 "tensors aligned to 4 bytes" "${on_gpu[@]}" --misalign 6
    FA_STUB=many_sms refused 3 "4 multiprocessors are too few" "${on_gpu[@]}"
    FA_STUB=many_sms refused 3 "0 multiprocessors are too few" ./fa_bench "${stub[@]}" --compile-only --quiet
    FA_STUB=packed_only "${on_gpu[@]}" --lse
    FA_STUB=packed_only refused 3 "rows of K are 32 elements apart" "${on_gpu[@]}" --strides bshd --kv-heads 2 --heads 2
}

@test "without a GPU a library is validated, and not run" {
    refused 4 "stub is a GPU library: not on the emulator" ./fa_bench "${stub[@]}" --device emu --quiet
    refused 4 "stub is a library: nothing to compile" ./fa_bench "${stub[@]}" --compile-only --quiet \
        --json "$work/r.json"
    record_holds "$work/r.json" '.status == "not_run"' '.library.name == "stub"' '.ptxas == null'
}

@test "a file that is no such library is refused in one line" {
    local bench=(./fa_bench --compile-only --quiet --library)
    echo "text" >"$work/text.so"
    refused 6 "text.so is not a shared object" "${bench[@]}" "$work/text.so"
    head -c 2000 "$work/stub.so" >"$work/short.so"
    refused 6 "short.so is cut off" "${bench[@]}" "$work/short.so"
    cp "$work/stub.so" "$work/other.so"
    printf '\xf3' | dd of="$work/other.so" bs=1 seek=18 conv=notrunc status=none # e_machine: RISC-V
    refused 6 "other.so is for another processor: its ELF machine is 243" "${bench[@]}" "$work/other.so"
    echo 'struct q; void fa_library_info(q *) {} void fa_forward(q *) {}' |
        g++ -shared -fPIC -x c++ -o "$work/mangled.so" -
    refused 6 'mangled.so does not export fa_library_info: include/fa_library.h declares it, extern "C"' \
        "${bench[@]}" "$work/mangled.so"
    build host_cuda plain.so
    refused 6 "plain.so does not export fa_library_info" "${bench[@]}" "$work/plain.so"
    build stub half.so -DWITHOUT_FORWARD
    refused 6 "half.so does not export fa_forward" "${bench[@]}" "$work/half.so"
    FA_STUB=old_abi refused 6 "was built for ABI 7 of include/fa_library.h" "${bench[@]}" "$work/stub.so"
    FA_STUB=negative refused 6 "stub asks for a workspace of -1 bytes" "${bench[@]}" "$work/stub.so"
    FA_STUB=needs refused 6 "stub has needs that this fa_bench does not know: 0x40" "${bench[@]}" "$work/stub.so"
    FA_STUB=two_lines refused 4 "nothing to compile" "${bench[@]}" "$work/stub.so" --json "$work/r.json"
    record_holds "$work/r.json" '.library.name == "a b"'
    echo 'void needed(void); void fa_library_info(void) { needed(); } void fa_forward(void) {}' >"$work/needs.c"
    gcc -shared -fPIC -o "$work/needs.so" "$work/needs.c"
    refused 6 "undefined symbol: needed" "${bench[@]}" "$work/needs.so"
    echo 'void needed(void) {}' | gcc -shared -fPIC -x c -o "$work/libneeded.so" -
    gcc -shared -fPIC -o "$work/needs.so" "$work/needs.c" -L"$work" -lneeded
    refused 4 "libneeded.so: cannot open shared object file" "${bench[@]}" "$work/needs.so"
}

@test "examples/library: a project that is not there is named" {
    run -2 make -s -B -C examples/library fa2 FA2_DIR=/none
    [[ $output == *"fa2: no /none/csrc/flash_attn/src: README.md says what to set"* ]]
    for backend in fa2 fa3; do
        run make -s -B -C examples/library flashinfer_$backend FLASHINFER_DIR=/none
        [[ $output == *"flashinfer_$backend: no /none/include/flashinfer: README.md says what to set"* ]]
    done
}

@test "a path that cannot be read, and options that do not go together, are usage" {
    mkfifo "$work/fifo"
    refused 2 "takes a file that can be read" ./fa_bench --library "$work"
    refused 2 "takes a file that can be read" ./fa_bench --library "$work/fifo"
    refused 2 "--library takes a file that can be read" ./fa_bench --library "$work/none.so"
    refused 2 "--library takes a file that can be read" ./fa_bench --vs "library:$work/none.so"
    refused 2 "library takes a file, library:FILE.so" ./fa_bench --vs library
    refused 2 "library takes a file, library:FILE.so" ./fa_bench --vs library:
    refused 2 "--library is a candidate like --kernel" ./fa_bench --kernel mma --library "$work/stub.so"
    refused 2 "--library is a candidate like --source" ./fa_bench --source examples/plain.cu --library "$work/stub.so"
    refused 2 "tile options are for kernels" ./fa_bench --library "$work/stub.so" --m 64
    refused 2 "--cubin takes a kernel that is compiled here" ./fa_bench --library "$work/stub.so" --cubin "$work/x"
}
