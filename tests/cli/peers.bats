#!/usr/bin/env bats
# The comparison with PyTorch: what counts, what is written, what is NOT-RUN; on made-up records, and on real arrays where PyTorch is.
load helper
load stub_bench

# Peers at 20 us (fa2), 15 us (cudnn), 30 us (efficient); math has no memory. Dies at the shape of $STUB/die.
make_peers() {
    cat >"$work/peers" <<'END'
#!/usr/bin/env bash
set -eu
echo "$*" >>"$STUB/server"
while read -r shape; do
    [[ ! -e $STUB/die || $(jq .seq <<<"$shape") != "$(cat "$STUB/die")" ]] || exit 3
    jq -c '[{kernel: "torch_flash", us: 20}, {kernel: "torch_cudnn", us: 15}, {kernel: "torch_efficient", us: 30}] |
        map({kernel, status: "pass", reason: null, timing: {p50_us: .us}, provenance: {compiler: "torch stub"}}) + [{kernel: "torch_math", status: "infeasible", reason: "memory", timing: null}]' <<<"$shape"
done
END
    chmod +x "$work/peers"
    export PEERS_TORCH=$work/peers
    jq -n '{shapes: [{batch: 2, heads: 8, seq: 512, dim: 64, causal: false, table: {fa2: 13, cudnn: 10, fa3: 8}}, {batch: 1, heads: 8, seq: 128, dim: 64, causal: true, table: null}]}' >"$work/grid.json"
}

peers() { scripts/peers.sh --grid "$work/grid.json" --out "$work/p/peers.json" "$@"; }

@test "row, best peer, ratio, geometric mean" {
    make_stub
    make_peers
    run peers --kernel one
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "2,8,512,64  one 50 us  best peer fa3_scaled 12 us  ratio 0.24" ]]
    [[ ${lines[1]} == "1,8,128,64 causal  one 50 us  best peer cudnn 15 us  ratio 0.3" ]]
    [[ ${lines[2]} == "geometric mean of best peer / ours over 2 shapes: 0.268" ]]
    jq -e 'length == 2 and (.[0] | .batch == 2 and .heads == 8 and .seq == 512 and .dim == 64 and .causal == false and .kernel == "one" and .config.m == 16 and .us == 50 and
        .peers == {fa2: 20, cudnn: 15, efficient: 30, fa3_scaled: 12} and .best_peer == "fa3_scaled" and .ratio == 0.24 and .absent.math == "memory") and (.[1].peers | has("fa3_scaled") | not)' "$work/p/peers.json"
    [ "$(wc -l <"$STUB/server")" -eq 1 ] # one PyTorch for all shapes
}

@test "without --kernel the last rung that serves the shape; with several the fastest" {
    make_stub
    make_peers
    peers
    jq -e 'all(.[]; .kernel == "two" and .us == 90)' "$work/p/peers.json"
    peers --kernel two,one
    jq -e 'length == 2 and all(.[]; .kernel == "one" and .us == 50)' "$work/p/peers.json"
}

@test "a stopped run goes on; an edited source and --again are measured anew" {
    make_stub
    make_peers
    echo 128 >"$STUB/die"
    run peers --kernel one
    [ "$status" -eq 4 ]
    [[ $output == *"NOT-RUN: the peers gave no answer"* ]]
    jq -e 'length == 1' "$work/p/peers.json"
    rm "$STUB/die"
    run peers --kernel one
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 2 ] # one shape and the mean of both
    [[ $output == *"over 2 shapes"* ]]
    run peers --kernel one
    [ "${#lines[@]}" -eq 1 ]
    # A row without one of the peers that are asked for is measured anew; one that says why the peer has no time is not.
    jq 'map(if .seq == 512 then del(.peers.fa2) else . end)' "$work/p/peers.json" >"$work/p/x" && mv "$work/p/x" "$work/p/peers.json"
    run peers --kernel one --peers cudnn,math
    [ "${#lines[@]}" -eq 1 ]
    run peers --kernel one --peers flash,cudnn
    [ "${#lines[@]}" -eq 2 ]
    jq -e 'all(.[]; .peers.fa2 == 20)' "$work/p/peers.json"
    printf '%064d' 4 >"$STUB/source.one"
    run peers --kernel one
    [ "${#lines[@]}" -eq 3 ]
    run peers --kernel one --again
    [ "${#lines[@]}" -eq 3 ]
    jq -e 'length == 2' "$work/p/peers.json"
}

@test "a wrong kernel has no ratio and fails the run" {
    make_stub
    make_peers
    echo 'one 16 4' >"$STUB/wrong"
    run peers --kernel one
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == *"wrong: made up"* ]]
    [[ $output == *"no ratio"* ]]
    jq -e 'all(.[]; .us == null and .ratio == null and .status == "wrong")' "$work/p/peers.json"
}

@test "no GPU, no PyTorch: NOT-RUN, exit 4" {
    make_peers
    if ! command -v nvidia-smi >/dev/null; then
        run peers
        [ "$status" -eq 4 ]
        [[ $output == *"NOT-RUN: "*libcuda* ]]
        [ ! -e "$work/p" ]
    fi
    make_stub
    PEERS_TORCH=false run peers
    [ "$status" -eq 4 ]
    [[ $output == *"NOT-RUN: the peers gave no answer"* ]]
    python3 -c 'import torch' 2>/dev/null && skip "PyTorch is here"
    run scripts/peers_torch.py
    [ "$status" -eq 4 ]
    [[ $output == *"NOT-RUN: no PyTorch here"* ]]
}

@test "the committed grid is whole, and --dry-run shows it" {
    jq -e '.shapes | length == 41 and all(.[]; .table.cudnn > 0 and .table.fa3 > 0)' scripts/peers_grid.json
    run scripts/peers.sh --dry-run --only causal
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 20 ]
    [[ $(scripts/peers_torch.py --dry-run --causal --backends cudnn) == "torch_cudnn 2,8,512,64 causal" ]]
}

@test "bad arguments are refused" {
    refused 2 "no kernel 'nosuch'" scripts/peers.sh --kernel nosuch
    refused 2 "--grid takes a file with shapes" scripts/peers.sh --grid tests/golden/ncu_query.txt
    refused 2 "no shape of" scripts/peers.sh --only 77777
    refused 2 "--peers takes flash" scripts/peers.sh --peers torch
    refused 2 "--max-time takes seconds" scripts/peers.sh --max-time soon
    run scripts/peers_torch.py --backends fast
    [ "$status" -eq 2 ]
    run scripts/peers_torch.py --compare o.npy
    [ "$status" -eq 2 ]
}

@test "parity: O of fa_bench is PyTorch's attention of the dumped inputs, and a changed O is not" {
    python3 -c 'import torch' 2>/dev/null || skip "no PyTorch"
    ./fa_bench --kernel light --device emu --batch 1 --heads 4 --kv-heads 2 --seq 65 --dim 72 --causal --seeds 1 --dump "$work" --quiet
    scripts/peers_torch.py --load "$work" --compare "$work/o.npy" --causal >"$work/parity.json"
    jq -e '.exact.passed and .exact.rows_checked == 260 and .max_abs_difference_to_torch < 2e-3' "$work/parity.json"
    run scripts/peers_torch.py --load "$work" --compare "$work/o.npy" # not causal
    [ "$status" -eq 1 ]
}

@test "records of PyTorch's times validate" {
    record_holds tests/golden/torch_h200.json '.status == "pass"' '.kernel == "torch_flash"' '.timing.method == "graph"' '.parity.passed'
}
