#!/usr/bin/env bats
# Attention equal to PyTorch's: real kernels on the emulator, real arrays, a stand-in for PyTorch if there is none.
load helper

# Draws inputs by fa_bench itself, and finds that all agree but those of dim $DISAGREE, by the record beside them.
make_other_side() {
    executable "$work/torch" <<'END'
set -eu
if [[ $1 != --parity ]]; then
    echo "$*" >>"${0%/*}/drawn"
    exec ./fa_bench --kernel light --device emu "$@" --seed 7 --seeds 1 --quiet
fi
shift
for folder in "$@"; do
    for name in {q,k,v,o}.npy record.json; do
        [[ -s $folder/$name ]] || { echo "no $name in $folder" >&2; exit 2; }
    done
    agrees=true
    [[ $(jq .problem.dim "$folder/record.json") != "${DISAGREE:-}" ]] || agrees=false
    jq -n --arg dir "$folder" --argjson ok "$agrees" '{dir: $dir, passed: $ok, device: "cpu", torch_version: "stub",
        exact: {passed: true, max_abs_err: 1e-4, rows_checked: 9}, torch: {passed: $ok, max_abs_difference: 2e-4}}'
done | jq -s .
[[ -z ${DISAGREE:-} ]]
END
    export PEERS_TORCH=$work/torch
}

no_gpu() { command -v nvidia-smi >/dev/null && skip "there is a GPU"; return 0; }

@test "one that disagrees fails by name; a kernel that cannot run here is NOT-RUN" {
    no_gpu
    make_other_side
    DISAGREE=72 run -1 scripts/evidence/parity.sh --kernel light,cublas --out "$work/p.json"
    [[ $output == *"FAIL light "*'"seq_q":113'* ]]
    [[ $output == *"cublas: 0 agree, 0 do not, 5 NOT-RUN"* ]]
    jq -e 'map(select(.verdict == "FAIL")) | length == 1' "$work/p.json"
}

@test "no PyTorch, no binary: NOT-RUN, exit 4; bad arguments are refused" {
    FA_BENCH=$work/none refused 4 "NOT-RUN: no $work/none" scripts/evidence/parity.sh
    refused 2 "no kernel 'nosuch'" scripts/evidence/parity.sh --kernel nosuch
    refused 2 "--jobs takes a whole number" scripts/evidence/parity.sh --jobs some
    refused 2 "--dtype takes fp16 or bf16, not 'half'" scripts/evidence/parity.sh --dtype half
    [ -z "$(scripts/evidence/parity.sh --kernel scalar --dtype bf16 --dry-run |
        grep -v -- '^--kernel scalar --dtype bf16 ')" ]
    [ "$(scripts/evidence/parity.sh --kernel scalar --dry-run | wc -l)" -ge 5 ]
    python3 -c 'import torch, numpy' 2>/dev/null && skip "PyTorch is here"
    run -4 scripts/evidence/parity.sh --kernel scalar --out "$work/p.json"
    [[ $output == "parity.sh: NOT-RUN: no PyTorch here"* ]]
    [ ! -e "$work/p.json" ]
}

# bats file_tags=slow
@test "kernels on inputs of either side: a row each, and what agrees passes" {
    no_gpu
    make_other_side
    run -0 scripts/evidence/parity.sh --kernel light --out "$work/p.json"
    [[ $output == *"light: 5 agree, 0 do not, 0 NOT-RUN"* ]]
    jq -e 'length == 5 and all(.[]; .verdict == "PASS" and .status == "pass") and (map(select(.inputs == "torch")) |
        length == 1 and all(.[]; .problem.seq_q == 127 and .problem.causal))' "$work/p.json"
}

@test "--dtype bf16: both sides draw it, every row names it" {
    no_gpu
    make_other_side
    cd "$work" && ln -s "$OLDPWD"/{fa_bench,kernels,include,scripts} . # the file has a name of its own
    scripts/evidence/parity.sh --dtype bf16 --kernel scalar
    [ ! -e build/parity.json ]
    jq -e 'length == 5 and all(.[]; .verdict == "PASS" and .problem.dtype == "bf16") and any(.[]; .inputs == "torch")' \
        build/parity_bf16.json
    grep -q '^--dtype bf16 .* --dump ' drawn
}
