#!/usr/bin/env bats
# The script that makes the committed evidence: parts that fail alone, and what is there when it is cut off.
load stub_bench

# A tree whose parts' scripts are made up: each says how it was called in $work/calls.
prepare() {
    make_stub
    mkdir -p "$work/tree"
    cp -r scripts "$work/tree/"
    for name in ci_gate evo_sweep ncu_profile peers evidence/parity house/compile_all; do
        printf '#!/usr/bin/env bash\necho "%s $*" >>"%s/calls"\n' "${name##*/}" "$work" |
            executable "$work/tree/scripts/$name.sh"
    done
}

evidence() { "$work/tree/scripts/evidence/evidence.sh" --out "$work/ev" "$@"; }

@test "each part is made by its own script, and goes to one folder" {
    mkdir "$work/ev"
    jq -n '[{group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", leader: "two",
        kernels: {two: {knobs: "m=32,warps=4"}}}]' >"$work/ev/leaderboard.json"
    evidence sweep parity profile peers --budget 7 --seconds 30
    for kernel in one two; do
        grep -qx "evo_sweep --kernel $kernel --strategy evo --budget 7 --seconds 30 --out $work/ev -- --seq 512" \
            "$work/calls"
    done
    grep -qx "parity --out $work/ev/parity.json" "$work/calls"
    grep -q "ncu_profile --out .* --kernel two --m 32 --warps 4" "$work/calls"
    # the winner on two problems; the baseline has no profile
    [ "$(grep -c '^ncu_profile .* --kernel' "$work/calls")" -eq 2 ]
    grep -qx "peers --out $work/ev/dense.jsonl" "$work/calls"
}

@test "a sweep of each kernel on the first problem that its rules give to it; not of what this commit has" {
    mkdir "$work/ev"
    jq -n '[{group: "g", leader: "two", kernels: {two: {knobs: "m=16", git: "stub"}, one: {git: "older"}}}]' \
        >"$work/ev/leaderboard.json"
    printf '%s\n' '# of the stub' '--seq 512 --dim 64' '--seq 9' >"$work/tree/scripts/lib/evidence/sweeps.txt"
    BAD_ARGS="--kernel one --seq 512" BAD_STATUS=infeasible run -0 evidence sweep
    [[ $output == *"two: swept at stub"* ]]
    [ "$(cut -d' ' -f1-3 "$work/calls")" = "evo_sweep --kernel one" ]
    grep -q -- " -- --seq 9$" "$work/calls"
    rm "$work/tree/scripts/lib/evidence/sweeps.txt" "$work/calls"
    # Of the registry: variants, types and gradients have problems of their own.
    grep -v '^#' scripts/lib/evidence/sweeps.txt >"$work/problems"
    for kernel in light mma wgmma wgmma_mla; do sed "s/^/--kernel $kernel /" "$work/problems"; done >"$work/list"
    ./fa_bench --runs "$work/list" --compile-only --no-bound --arch sm_90a --quiet --json "$work/served" || true
    ./fa_bench --list-kernels --json - | jq -r -L scripts/lib 'import "evidence" as m; m::swept' \
        --rawfile points "$work/list" --slurpfile records "$work/served" >"$work/swept"
    grep -qx $'wgmma_mla\t--batch 4 .*--v-in-k' "$work/swept"
    grep -qx $'light_backward\t--op backward' "$work/swept"
    [ "$(grep -c $'^\(mma\|wgmma\).*\t--' "$work/swept")" -eq 12 ] # none is left out
    grep -qx $'scalar\t' "$work/swept" # it was not asked for
}

@test "the last rung against the fused library at both paces, and the default kernel: also a run that fails" {
    touch "$STUB/source.lib"
    echo 'lib 16 4 90' >>"$STUB/times"
    echo 'two 16 4' >"$STUB/wrong"
    echo '--seq {512|10|11}' >"$work/tree/scripts/lib/peers/dense.txt"
    echo '--seq 99' >"$work/tree/scripts/lib/pairs/more.txt"
    run -0 evidence versus
    [[ $output == *"one over made up 1.2, sustained: geometric mean 1.8, least 1.8, 0 below 1, 6 pairs"* ]]
    [[ $output == *"two over lib, rested: no pair"*"wrong, 4 pairs: made up (2,8,512,64;"* ]]
    zcat "$work/ev/versus.jsonl.gz" | jq -nR -L scripts/lib 'import "pairs" as m; m::rows' |
        jq -e 'length == 14 and (map(select(.kernel == "two" and .status == "wrong" and .vs == "lib")) |
        group_by(.pace) | map([.[0].pace, length])) == [["rested", 4], ["sustained", 4]] and
        all(.[]; .arch == "sm_90a" and .code_sha256 != null)'
}

@test "L2 persistence: every rung with and without, warm and cold, at two lengths; one that fails says why" {
    BAD_ARGS="--kernel two --seq-kv 512 --l2 cold --l2-persist kv" BAD_STATUS=infeasible run -0 evidence l2
    [[ $output == *$'one\t4096\tcold\t50\t50\t1'* && $output == *$'two\t512\tcold\t90\t-\tmade up'* ]]
    [ "$(grep -c $'\t1$' <<<"$output")" -eq 7 ]
    zcat "$work/ev/l2_persist.jsonl.gz" | jq -es 'length == 16'
}

@test "the sanitizer's cases are kept, and gone on from" {
    executable "$work/tree/scripts/ci_gate.sh" <<'END'
echo "ci_gate $*" >>"${0%/*}/../../calls"
while [[ $1 != --out ]]; do shift; done
mkdir -p "$2"
echo '{"verdict": "passed", "text": "x"}' >"$2/cases.jsonl"
echo '{}' >"$2/summary.json"
touch "$2/junit.xml"
END
    evidence sanitize
    evidence sanitize
    [ "$(zcat "$work/ev/sanitize.cases.jsonl.gz")" = '{"verdict":"passed"}' ]
    [ "$(grep -c -- "--sanitize --jobs 10 --resume $work/ev/sanitize.cases.jsonl.gz --out" "$work/calls")" -eq 1 ]
}

@test "the grid is run for both architectures, from the points that are there" {
    mkdir "$work/ev"
    echo '{"point": "p"}' | gzip >"$work/ev/tile_grid_sm_89.json.points.jsonl.gz"
    sed -i 's|^echo|while [[ $1 != --out ]]; do shift; done; cat "$2".points.jsonl 2>/dev/null >>"'"$work"'/seen"; \
        echo "{}" >>"$2.points.jsonl"\n&|' "$work/tree/scripts/house/compile_all.sh"
    GRID_OPTIONS="--seconds 9" evidence grid
    grep -qx "compile_all --out $work/ev/tile_grid.json --run --resume --seconds 9" "$work/calls"
    grep -qx "compile_all --out $work/ev/tile_grid_sm_89.json --run --resume --arch sm_89 --seconds 9" "$work/calls"
    [ "$(cat "$work/seen")" = '{"point": "p"}' ]
    [ "$(zcat "$work/ev/tile_grid_sm_89.json.points.jsonl.gz" | wc -l)" -eq 2 ]
}

@test "a part that fails is said, and the others are made" {
    printf '#!/usr/bin/env bash\nexit 1\n' >"$work/tree/scripts/evidence/parity.sh"
    run -1 evidence parity gate peers
    [[ $output == *"evidence.sh: failed: parity gate" ]] # the made-up gate leaves no summary
    grep -q '^peers' "$work/calls"
}

@test "cut off in the middle: what was finished is there" {
    printf '#!/usr/bin/env bash\necho peers >"%s/calls"\nsleep 600\n' "$work" >"$work/tree/scripts/peers.sh"
    touch "$STUB/source.lib"
    echo 'lib 16 4 90' >>"$STUB/times"
    echo '--seq {9|10}' >"$work/tree/scripts/lib/peers/dense.txt"
    : >"$work/tree/scripts/lib/pairs/more.txt"
    setsid "$work/tree/scripts/evidence/evidence.sh" versus peers --out "$work/ev" >/dev/null 2>&1 3>&- &
    victim=$!
    eventually test -s "$work/calls"
    kill -9 -- "-$victim"
    wait "$victim" || true
    zcat "$work/ev/versus.jsonl.gz" | jq -es 'length == 10 and all(.[]; .schema == "fa_bench.result/1")'
}

@test "no GPU, no binary: NOT-RUN, exit 4; bad arguments are refused; --dry-run runs nothing" {
    touch "$STUB/no_gpu"
    local parts
    for parts in versus all "robustness all"; do refused 4 "NOT-RUN: no GPU here" evidence $parts; done
    FA_BENCH=$work/none refused 4 "NOT-RUN: no $work/none" evidence versus
    refused 2 "unknown argument all-of-it" evidence all-of-it
    refused 2 "--budget takes a whole number" evidence sweep --budget 0
    run -0 evidence all --dry-run
    [[ $output == *"evo_sweep.sh --kernel two"*"pairs.sh --pace sustained,rested"*"peers.sh"* ]]
    [ ! -e "$work/calls" ]
    [ ! -e "$work/ev" ]
}

@test "evidence is of a commit: a changed script or a build of a changed tree is refused, elsewhere is not evidence" {
    tree=$work/tree
    git -C "$tree" init -q
    git -C "$tree" -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
    refused 2 "scripts/ differs from HEAD: commit it first" "$tree/scripts/evidence/evidence.sh" parity
    refused 2 "scripts/ differs from HEAD" "$tree/scripts/evidence/pairs.sh" --out "$tree/evidence/stub/p.jsonl"
    refused 2 "scripts/ differs from HEAD" "$tree/scripts/evidence/ladder.sh" --out "$tree/evidence/ladder.jsonl"
    [ ! -e "$work/calls" ] && [ ! -e "$tree/evidence" ]
    "$tree/scripts/evidence/evidence.sh" parity --dry-run
    evidence parity # into $work/ev
    git -C "$tree" add scripts
    git -C "$tree" -c user.name=x -c user.email=x@x commit -qm x
    "$tree/scripts/evidence/evidence.sh" parity
    grep -qx "parity --out evidence/stub/parity.json" "$work/calls"
    # Without a history the build says it.
    rm -rf "$tree/.git"
    sed 's/"git":"[^"]*"/"git":"0123-dirty"/g' "$FA_BENCH" | executable "$work/changed"
    FA_BENCH=$work/changed refused 2 "was built from a changed tree (0123-dirty): run make" \
        "$tree/scripts/evidence/evidence.sh" parity
}

@test "a GPU's folder is its whole name, by one rule" {
    # shellcheck source=/dev/null
    source scripts/lib/gpu.sh
    [ "$(gpu_folder 'NVIDIA H200')" = h200 ]
    [ "$(gpu_folder 'NVIDIA L4')" = l4 ]
    [ "$(gpu_folder 'NVIDIA RTX 6000 Ada Generation')" = rtx_6000_ada_generation ]
    [ "$(gpu_folder 'NVIDIA H100 80GB HBM3 (MIG)')" = h100_80gb_hbm3_mig ]
    [ "$(grep -rl 's/^NVIDIA' scripts)" = scripts/lib/gpu.sh ]
    make_stub
    [ "$(gpu_name "$FA_BENCH")" = "NVIDIA Stub" ]
    touch "$STUB/no_gpu"
    [ -z "$(gpu_name "$FA_BENCH")" ]
    [ -z "$(gpu_name ./fa_bench)" ] || command -v nvidia-smi
}
