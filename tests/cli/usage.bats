#!/usr/bin/env bats
# Bad input as a new user types it: one line that names the option and its range, exit 2, no record.
load helper

@test "numbers, words, names and files that cannot be: the option and what it takes" {
    refused 2 "--timeout takes a number" ./fa_bench --timeout soon
    refused 2 "--dim takes a multiple of 8 from 16 to 576" ./fa_bench --dim 20
    refused 2 "--kv-heads takes a divisor of --heads (8)" ./fa_bench --heads 8 --kv-heads 3
    refused 2 "near: " ./fa_bench --kernel nope
    refused 2 "light" ./fa_bench --kernel lite
    refused 2 "near: " ./fa_bench --vs nope
    refused 2 "--arch takes one of" ./fa_bench --arch sm_13
    refused 2 "--json takes - or a file in a folder that can be written" ./fa_bench --json /no/such/dir/x.json
    refused 2 "--json takes" ./fa_bench --json "$work"
    refused 2 "--source takes a file that can be read" ./fa_bench --source "$work/none.cu"
}

@test "options that say nothing beside each other: one line" {
    refused 2 "one of the two" ./fa_bench --bound --no-bound
    refused 2 "not with another sanitizer" ./fa_bench --device emu --race --sanitize address
    refused 2 "--vs needs times" ./fa_bench --compile-only --vs light
    refused 2 "--dump writes what a kernel made" ./fa_bench --compile-only --dump "$work/dump"
    refused 2 "--select compiles nothing" ./fa_bench --select --bound
    refused 2 "--gpu is not for --device emu" ./fa_bench --device emu --gpu 1
    refused 2 "are for the emulator" ./fa_bench --device cuda --schedule greedy
    refused 2 "Is a directory" ./fa_bench --runs "$work"
    refused 2 "no_such_kernel" ./fa_bench --source examples/plain.cu --kernel no_such_kernel
    refused 2 "--kernel light and --source are two candidates" ./fa_bench --source examples/plain.cu --kernel light
}

@test "a line break in an argument leaves the refusal on one line" {
    refused 2 "'a b' is not an option" ./fa_bench $'a\nb'
    refused 2 "--m takes a whole number from 1 to 1024, not '3 2'" ./fa_bench --m $'3\n2'
    refused 2 "that can be read, not '$work/a b.cu'" ./fa_bench --source "$work"/$'a\nb.cu'
}

@test "what is valid but does not fit in memory is refused before allocation" {
    run -3 timeout 300 ./fa_bench --device emu --batch 1000000 --json "$work/r.json"
    [[ $output == *"GiB"* ]]
    record_holds "$work/r.json" '.status == "infeasible"' '.timing == null'
}

@test "help and version go to stdout and exit 0" {
    run -0 ./fa_bench --help
    [[ $output == *"--vs SPEC"* ]]
    run -0 ./fa_bench --version
    [[ $output == fa_bench* ]]
}

@test "the registry as text and as JSON" {
    ./fa_bench --list-kernels >"$work/list"
    grep -q '^light ' "$work/list"
    grep -q 'for sm_90a; ' "$work/list"
    grep -q "^the rule's tile is the default instead" "$work/list"
    grep -q '^--arch takes sm_75, ' "$work/list"
    ./fa_bench --list-kernels --json - | jq -e 'length > 1 and all(.[]; .name and .idea)
        and ([.[] | select(.default)] | length == 1)'
}

@test "an architecture below what a kernel needs is infeasible and says which" {
    refused 3 "mma needs sm_80 or later" ./fa_bench --kernel mma --compile-only --arch sm_75 --quiet
    refused 3 "light needs sm_80 or later" ./fa_bench --kernel light --compile-only --arch sm_75 --quiet
    refused 3 "wgmma needs sm_90a" ./fa_bench --kernel wgmma --compile-only --arch sm_89 --quiet
    refused 3 "on the emulator: --arch sm_90a" ./fa_bench --source kernels/wgmma.cu --device emu --m 128 --swizzle 1 \
        --quiet
    ./fa_bench --kernel scalar --compile-only --arch sm_75 --quiet --json "$work/r.json"
    jq -e '.ptxas.arch == "sm_75"' "$work/r.json"
}

@test "a tile that is asked for runs in the kernel that is asked for, beside --vs too" {
    ./fa_bench --kernel wgmma --arch sm_90a --compile-only --quiet --json "$work/r.json" || [ $? -eq 4 ]
    jq -e '.variant == "wgmma_small"' "$work/r.json" # no tile option: a rule chooses
    for knob in m=64 n=64 warps=8 vec=8 stages=2 swizzle=1 acc=fp32 splits=1 maxreg=0; do
        ./fa_bench --kernel wgmma "--$knob" --arch sm_90a --compile-only --quiet --json "$work/r.json" 2>"$work/err" ||
            [[ $? -eq 4 || $(cat "$work/err") != *"which serves"* ]]
        jq -e '.variant == "wgmma"' "$work/r.json" || { echo "$knob"; return 1; }
    done
    refused 3 "wgmma_small, which serves this problem: " ./fa_bench --kernel wgmma --compile-only --arch sm_100a --quiet
    refused 3 "infeasible: wgmma needs sm_90a" ./fa_bench --kernel wgmma --m 128 --compile-only --arch sm_100a --quiet
}

@test "--select: what a run takes, and the rule of the registry that it is from; nothing is compiled" {
    ./fa_bench --list-kernels --json "$work/kernels.json"
    printf '%s\n' '--kernel wgmma --arch sm_90a' '--kernel wgmma --arch sm_90a --seq 1 --seq-kv 4096 --dim 128' \
        '--kernel wgmma --arch sm_90a --m 128' '--kernel mma --seq 1 --seq-kv 4096' '--kernel mma' '--kernel scalar' \
        '--source examples/plain.cu --m 16' '--kernel light --arch sm_80' >"$work/list"
    XDG_CACHE_HOME=$work/cache ./fa_bench --select --runs "$work/list" --json "$work/got" >"$work/text"
    [ ! -e "$work/cache" ]
    keep_for_schema "$work/got"
    grep -qx "rule      $(jq -s '.[0].rule' "$work/got") of wgmma; sm_90a with 132 multiprocessors" "$work/text"
    grep -qx "rule      none: the kernel's defaults; sm_89 with 58 multiprocessors" "$work/text"
    jq -es --slurpfile all "$work/kernels.json" 'map(select(.rule)) | length == 6 and all(.[]; . as $got |
        ($all[0][] | select(.name == $got.kernel).rules[$got.rule - 1]) as $rule | $rule.serves == $got.variant and
        $rule.config.n == $got.config.n and $rule.config.warps == $got.config.warps)' "$work/got"
    ./fa_bench --compile-only --runs "$work/list" --quiet --json "$work/want" || [ $? -eq 4 ]
    diff <(jq -c '[.variant, .config, .provenance.line]' "$work/want") \
        <(jq -c '[.variant, .config, .provenance.line]' "$work/got")
}

chooses() { # VARIANT OTHER 'CHANGES' OPTIONS...: of wgmma, with these options; the other with one of the changes
    local change want=$1
    for change in causal $3; do
        ./fa_bench --select --kernel wgmma --arch sm_90a --causal --quiet --json "$work/r.json" "${@:4}" "--$change"
        jq -e --arg want "$want" '.variant == $want' "$work/r.json" || { echo "$change"; return 1; }
        want=$2
    done
}

@test "wgmma_short has causal sequences of up to 512 keys, at dims above 192, where K and V do not fit L2" {
    chooses wgmma_short wgmma "batch=8 kv-heads=2 seq=513 seq-kv=513 dim=192 softcap=30" \
        --batch 32 --heads 8 --seq 512 --dim 256
}

@test "wgmma_backward_heads has many causal heads of up to 512 rows, up to dim 64, where each has its K/V head" {
    chooses wgmma_backward_heads wgmma_backward "batch=16 kv-heads=16 seq=513 seq-kv=513 dim=72 softcap=30" \
        --op backward --batch 64 --heads 32 --seq 256 --dim 64
}

@test "--select on a device counts its multiprocessors; --vs has a rule of its own" {
    ./fa_bench --select --device emu --kernel wgmma --quiet --json "$work/r.json"
    jq -e '.sm_count == 4 and .variant == "wgmma" and .rule != 6 and .vs == null' "$work/r.json"
    ./fa_bench --select --kernel wgmma --vs mma:m=16 --seq 1 --seq-kv 4096 --quiet --json "$work/r.json"
    keep_for_schema "$work/r.json"
    jq -e '.variant == "wgmma_decode" and .vs.variant == "mma" and .vs.config.m == 16' "$work/r.json"
    ! ./fa_bench --version | grep -q '^gpu 0' || skip "there is a GPU"
    refused 4 "no CUDA driver" ./fa_bench --select --device cuda --quiet --json "$work/r.json"
    keep_for_schema "$work/r.json"
}

# Every rule names a kernel that exists and a whole tile; a kernel with variants has the rules that select them.
@test "the rules of a kernel are in the JSON of the registry" {
    ./fa_bench --list-kernels --json "$work/kernels.json"
    jq -e 'all(.[]; .rules | type == "array") and any(.[]; .rules | length > 0)' "$work/kernels.json"
    jq -e 'map(.name) as $names | all(.[].rules[];
        (.serves | IN($names[])) and .max_dim >= 16 and (.causal | IN(null, true, false))
        and (.max_fill_percent == null or .max_fill_percent > 0) and .config.m > 0 and .config.warps > 0
        and (.config.acc | IN("fp32", "fp16")))' "$work/kernels.json"
    jq -e 'map(select(.variant_of)) | length > 0' "$work/kernels.json"
    jq -e '. as $all | all(.[] | select(.variant_of); . as $variant
        | any($all[]; .name == $variant.variant_of and any(.rules[]; .serves == $variant.name)))' "$work/kernels.json"
}

# 2 x 8 heads of 8 tiles of 64 rows on 58 multiprocessors (sm_89): a fill of 220 percent.
@test "a run without tile options takes the tile of its first matching rule" {
    ./fa_bench --list-kernels --json "$work/kernels.json"
    for dim in 64 128 256; do
        ./fa_bench --kernel wmma --compile-only --arch sm_89 --dim "$dim" --quiet --json "$work/r.json" || [ $? -eq 4 ]
        jq -e --argjson dim "$dim" --slurpfile run "$work/r.json" '
            first(.[] | select(.name == "wmma") | .rules[]
                | select(.max_dim >= $dim and .causal != true and (.max_fill_percent // 220) >= 220))
            | .config == $run[0].config and .serves == $run[0].variant' "$work/kernels.json"
    done
}

# No jq, no compiler, no nvidia-smi, no fa_bench: nothing is asked of them before the options are read.
@test "every script has -h and --help, and refuses a misspelt option before anything else" {
    local tool script option
    mkdir "$work/bin"
    for tool in bash basename cat dirname env grep mkdir mktemp nproc python3 readlink realpath rm sed; do
        ln -s "$(command -v "$tool")" "$work/bin/$tool"
    done
    for script in $(find scripts tests studies -type f -perm -u+x ! -name '*.bats'); do
        [[ $script == tests/* || $script == *.py ]] || grep -qF "${script##*/}" scripts/README.md ||
            { echo "$script: not in scripts/README.md"; return 1; }
        for option in -h --help --nosuch; do
            PATH=$work/bin FA_BENCH=$work/none run "$script" "$option"
            case $option in
                --nosuch) [[ $status -eq 2 && $output == *--nosuch* ]] ;;
                *) [[ $status -eq 0 && $output == *"usage: "* ]] ;;
            esac || { echo "$script $option: exit $status: $output"; return 1; }
        done
    done
}

@test "--doctor: what is needed for what, found or not, and the command that brings it" {
    mkdir "$work/bin"
    ln -s "$(command -v jq)" "$work/bin/"
    PATH=$work/bin ./fa_bench --doctor >"$work/text"
    grep -qE "^found +jq +the scripts +$work/bin/jq$" "$work/text"
    grep -qE '^missing +g\+\+ +the CPU emulator +scripts/setup.sh run$' "$work/text"
    grep -qE '^missing +optuna +evo_sweep.sh --strategy tpe +scripts/setup.sh test$' "$work/text"
    [ -z "$(grep -vE '^(fa_bench |(found|missing) +[^ ].*[^ ]  +[^ ])' "$work/text")" ]
    local name
    for name in nvdisasm ncu gnuplot chromium sbatch ssh jsonschema parallel torch cutlass NVRTC cuBLAS 'a GPU' pip \
        actionlint cmocka 'plugin of g++' gzip; do
        grep -q " $name  " "$work/text"
    done
}

@test "what runs and where is printed first; on the emulator also that it takes minutes, and what to type instead" {
    ./fa_bench --kernel light --device emu --seq 4096 --no-ptxas --timeout 100 >"$work/text" 2>"$work/err" 3>&- &
    local pid=$!
    eventually grep -q '^device    emu' "$work/text"
    eventually grep -q 'minutes or more' "$work/err"
    [ "$(cut -d' ' -f1 "$work/text" | paste -sd' ')" = "kernel problem device" ]
    kill "$pid"
    wait "$pid" || true
    grep -qE 'needs [0-9]+ minutes or more for this, and --timeout is 100 s; smaller: fa_bench ' "$work/err"
    eval "timeout 100 ./$(sed -n 's/.*; smaller: //p' "$work/err")" >"$work/text" # what to type instead
    [ "$(grep -c '^device    emu' "$work/text")" -eq 1 ]
    grep -q '^check     PASS, 1 seed' "$work/text"
    grep -q 'no ptxas figures: --no-ptxas' "$work/text"
}

@test "--no-ptxas is for the emulator" {
    refused 2 "--no-ptxas is for runs on the emulator" ./fa_bench --kernel light --compile-only --no-ptxas --quiet
    PATH=/usr/bin:/bin ./fa_bench --source examples/plain.cu "${small[@]}" --no-ptxas --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' '.ptxas == null'
}

@test "knobs that the kernel does not read are not printed as if they were used" {
    head_of() { ./fa_bench "$@" --device emu --no-ptxas "${small[@]}" | head -n 1; }
    [ "$(head_of --source examples/plain.cu --m 32)" = "kernel    plain  m=32" ]
    [ "$(head_of --source examples/plain.cu --m 32 --vec 4)" = "kernel    plain  m=32 vec=4" ]
    [ "$(head_of --kernel scalar --m 8 --vec 1)" = "kernel    scalar  m=8 warps=8 vec=1" ]
    sed 's|^static_assert|static_assert(FA_N > 0 \&\& FA_WARPS > 0, "k");\n&|' examples/plain.cu >"$work/n.cu"
    [ "$(head_of --source "$work/n.cu" --m 32)" = "kernel    n  m=32 n=64 warps=4" ]
}
