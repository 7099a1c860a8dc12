#!/usr/bin/env bats
# Features beyond dense forward: options, what a kernel serves and needs, the record; every kernel on what it serves.
load helper

small=(--device emu --batch 2 --heads 4 --kv-heads 2 --seq 45 --seq-kv 70 --dim 32 --seeds 3 --check cpu --lse --quiet)

# What each feature's word asks for; lengths with an empty sequence, rows that see nothing, a window beyond the keys.
options_of() { # WORD
    case $1 in
    varlen) echo "--lengths 17,0,33:5,5:33,1,0:7,3:0" ;;
    window) echo "--window 9,3" ;;
    chunk) echo "--chunk 20" ;;
    softcap) echo "--softcap 2" ;;
    sink) echo "--sinks" ;;
    alibi) echo "--alibi" ;;
    bias) echo "--bias" ;;
    mask) echo "--mask tree" ;;
    dim_v) echo "--dim-v 24" ;;
    paged) echo "--page-size 8" ;;
    *) return 1 ;;
    esac
}

passes() { # OPTIONS...
    exits 0 ./fa_bench "${small[@]}" "$@" --json "$work/r.json"
}

@test "a plain kernel with every feature passes, each alone and all together" {
    local word all=""
    for word in varlen window chunk softcap sink alibi bias mask dim_v paged; do
        passes --source tests/features/plain.cu $(options_of $word)
        all="$all $(options_of $word)"
    done
    passes --source tests/features/plain.cu $all --dtype bf16 --strides padded
    record_holds "$work/r.json" '.problem | .lengths.q == [17,0,33,5,1,0,3] and .window == [9,3] and .chunk == 20 and
        .softcap == 2 and .sinks and .alibi and .bias and .mask == "tree" and .dim_v == 24' \
        '.serves | length == 10' '.problem | .page_size == 8 and .page_layout == "nhd"' '.needs == []'
    python3 tests/validate_record.py "$work/r.json"
    passes --source tests/features/plain.cu --v-in-k --dim-v 24 --page-size 8 --strides padded
    record_holds "$work/r.json" '.problem.v_in_k'
}

@test "without --kernel the next default serves what the first does not; with a tile option, or a name, none is tried" {
    passes --bias --dtype bf16 --no-ptxas
    record_holds "$work/r.json" '.kernel == "light"'
    XDG_CACHE_HOME=$work ./fa_bench "${small[@]/--quiet/--no-ptxas}" --bias | # nothing compiled: the first is shown
        grep "^kernel    light .*, which serves this problem$"
    passes --dim 320 --seq 9 --seq-kv 9 --seeds 1 --no-ptxas
    refused 3 "mma does not serve --bias" ./fa_bench "${small[@]}" --bias --m 64
    refused 3 "wmma does not serve --window" ./fa_bench "${small[@]}" --kernel wmma --window 5,5
}

mla=(--kernel wgmma_mla --dim 576 --dim-v 512 --v-in-k --batch 1 --kv-heads 1)

@test "wgmma_mla: pages in a batch of unlike lengths, some empty; rows that see nothing; splits" {
    local splits
    for splits in 1 2 7; do
        passes "${mla[@]}" --heads 16 --splits $splits --page-size 64 --lengths 1:300,3:1,2:0,0:70,1:65 --causal \
            --seeds 2
    done
    record_holds "$work/r.json" '.serves == ["varlen", "paged", "dim_v"]'
    passes "${mla[@]}" --heads 9 --seq 1 --seq-kv 330 --splits 1 --dtype bf16 --dist outlier --scale 1
    refused 3 "takes pages of a multiple of 64 rows: not --page-size 32" \
        ./fa_bench "${small[@]}" "${mla[@]}" --page-size 32
    ./fa_bench "${mla[@]}" --compile-only --arch sm_90a --quiet --json "$work/c.json" || [ $? -eq 4 ]
    record_holds "$work/c.json" '.status == "not_run" or (.ptxas.spill_store_bytes == 0 and .ptxas.warnings == [])'
    refused 3 "wgmma_mla serves --dim 576 --dim-v 512 --v-in-k only" ./fa_bench "${small[@]}" --kernel wgmma_mla
    refused 3 "wgmma_mla serves --dim 576 --dim-v 512 --v-in-k only" \
        ./fa_bench "${small[@]}" --kernel wgmma_mla --dim 576 --dim-v 512
}

@test "rows that are further from each other than offsets of 32 bits reach are read right, also with features" {
    local far="--kernel mma --batch 1 --heads 1 --kv-heads 1 --seq 21 --seq-kv 33 --dim 16 --strides far --seeds 1"
    passes $far --window 9,3
    passes $far --lengths 21:33
    exits 0 ./fa_bench --device emu $far --op backward --check cpu --quiet
}

@test "pages and splits of a sequence's own length: mma_decode, mma_mla, wgmma_decode, and wgmma of many rows" {
    local lengths=(--lengths 1:20,3:700,2:3,1:0,0:9,9:300)
    passes --kernel mma_decode --splits 3 --heads 16 --kv-heads 2 --page-size 7 "${lengths[@]}" --causal --lse --seeds 2
    passes --kernel mma_mla --dim 576 --dim-v 512 --v-in-k --kv-heads 1 --heads 16 --splits 3 --page-size 64 \
        --lengths 1:300,3:1,2:0,0:70,1:65 --causal --seeds 2
    passes --kernel wgmma_decode --splits 4 --heads 16 --kv-heads 2 --page-size 16 "${lengths[@]}" --causal
    passes --kernel wgmma_decode --splits 3 --heads 16 --kv-heads 2 --page-size 48 "${lengths[@]}" --window 90,0 \
        --sinks --lse
    passes --kernel wgmma --page-size 16 --batch 5 --lengths 300:310,1:5,40:90,0,5:0 --causal --dtype bf16
    passes --kernel wgmma --heads 2 --race --schedule random --lengths 66:3,0,0,0 # a block without a tile is last
    refused 3 "takes pages of a multiple of 16 rows: not --page-size 8" \
        ./fa_bench "${small[@]}" --kernel wgmma --page-size 8
    ./fa_bench --kernel mma --dim 576 --dim-v 512 --v-in-k --kv-heads 1 --page-size 64 --heads 128 --seq 1 \
        --seq-kv 4096 --compile-only --arch sm_89 --quiet --json "$work/c.json" || [ $? -eq 4 ]
    record_holds "$work/c.json" '.status == "not_run" or (.variant == "mma_mla" and .ptxas.spill_store_bytes == 0)'
}

@test "wgmma with lengths: the rules' tiles up to dim 64 spill nothing" {
    for mask in "" --causal; do
        ./fa_bench --kernel wgmma --lengths 300,2000 --heads 16 --dim 64 --arch sm_90a --compile-only --quiet \
            --json "$work/r.json" $mask
        record_holds "$work/r.json" '.ptxas.spill_store_bytes == 0'
    done
}

@test "no race where the parts of splits are combined" {
    local raced=(--heads 2 --batch 1 --seeds 1 --no-ptxas --race) schedule
    for schedule in descending random; do
        passes "${raced[@]}" --kernel wgmma --splits 2 --seq 30 --seq-kv 300 --schedule $schedule
        passes "${raced[@]}" --kernel wgmma --splits 3 --seq 30 --seq-kv 300 --schedule $schedule
    done
    passes "${raced[@]}" --kernel wgmma_decode --splits 2 --seq 30 --seq-kv 130
}

@test "wgmma_packed: groups of 3, 5, 8 and 12 heads, rows that fill no tile, sinks of each head; wgmma takes it" {
    local tile=(--kernel wgmma_packed --arch sm_90a --seeds 1 --dim 64 --no-ptxas)
    passes "${tile[@]}" --heads 5 --kv-heads 1 --seq 150 --seq-kv 210 --window 127,0 --causal --sinks
    passes "${tile[@]}" --heads 12 --kv-heads 1 --seq 70 --seq-kv 40 --window 9,3 --m 64 --warps 4 --sinks
    passes "${tile[@]}" --heads 6 --lengths 17,0,33:5,90:140 --batch 4 --window 60,0 --chunk 70 --n 80 --stages 1
    passes "${tile[@]}" --heads 8 --kv-heads 1 --seq 50 --dim 128 --dim-v 64 --page-size 16
    local window=(--kernel wgmma --arch sm_90a --seeds 1 --dim 64 --seq 256 --seq-kv 256 --window 127,0 --batch 1)
    passes "${window[@]}" --heads 8 --kv-heads 1 --sinks --no-ptxas
    record_holds "$work/r.json" '.variant == "wgmma_packed" and .config.n == 80'
    passes "${window[@]}" --heads 5 --kv-heads 1 --no-ptxas
    record_holds "$work/r.json" '.variant == "wgmma_packed" and .config.n == 160'
}

@test "wgmma: warpgroups that see other keys, sequences by length, and more of them than it sorts" {
    local tile=(--kernel wgmma --arch sm_90a --seeds 1 --dim 64 --batch 1 --stages 2 --n 64)
    passes "${tile[@]}" --m 192 --warps 12 --seq 400 --seq-kv 430 --window 90,5 --sinks
    passes "${tile[@]}" --m 256 --warps 16 --stages 1 --seq 300 --seq-kv 300 --chunk 70 --causal
    passes "${tile[@]}" --m 128 --warps 8 --splits 3 --batch 7 \
        --lengths 0,150,1:0,33:200,150,0:5,129 --causal --softcap 3
    passes "${tile[@]}" --m 64 --warps 4 --heads 1 --kv-heads 1 --batch 300 \
        --lengths "$(seq -s, 3 102),$(seq -s, 0 199)" --seq 200 --seq-kv 200
    passes "${tile[@]}" --m 128 --warps 8 --dim 192 --dim-v 128 --n 128 --seq 150 --seq-kv 150 --alibi --dtype bf16
    passes "${tile[@]}" --m 192 --warps 12 --dim 192 --dim-v 128 --batch 4 --lengths 5:30,3:0,2:9,4:0 --strides padded
}

@test "what a file needs is refused elsewhere by name, and draws offer it" {
    sed 's|^// FA_SPACE|// FA_NEEDS: packed mha\n&|' tests/features/plain.cu >"$work/needy.cu"
    refused 3 "needs a K/V head for each query head: not 2 for 4" ./fa_bench "${small[@]}" --source "$work/needy.cu"
    refused 3 "needs packed tensors: not --strides bshd" \
        ./fa_bench "${small[@]}" --source "$work/needy.cu" --kv-heads 4 --strides bshd
    passes --source "$work/needy.cu" --kv-heads 4
    record_holds "$work/r.json" '.needs == ["packed", "mha"]' '[.check.draws[].strides] | unique == ["packed"]'
    sed -i 's/packed mha/pakced/' "$work/needy.cu"
    refused 2 "FA_NEEDS takes words of packed|mha|self|aligned|whole_m|whole_n, not 'pakced'" \
        ./fa_bench "${small[@]}" --source "$work/needy.cu"
}

@test "bad lengths, windows and dimensions are one line" {
    refused 2 "--window takes LEFT,RIGHT" ./fa_bench --window 3
    refused 2 "--window takes LEFT,RIGHT" ./fa_bench --window " 3,+4"
    refused 2 "--softcap takes 0 or a number from 1e-6" ./fa_bench --softcap 1e-300 # 0 in FP32: no softcap
    refused 2 "--lengths takes lengths from 0" ./fa_bench --lengths 5,,6
    refused 2 "--lengths takes lengths from 0" ./fa_bench --lengths 5:
    refused 2 "--lengths takes lengths from 0" ./fa_bench --lengths 1048577
    refused 2 "no sequence has a query" ./fa_bench --lengths 0:9
    refused 2 "cannot read" ./fa_bench --lengths @/none
    refused 2 "--dim-v takes a multiple of 8" ./fa_bench --dim-v 20
    refused 2 "--v-in-k takes a --dim-v of at most --dim (64)" ./fa_bench --v-in-k --dim-v 72
    refused 2 "at most 4096 sequences" ./fa_bench --lengths "$(seq -s, 5000)"
    printf '\xef\xbb\xbf# queries:keys\n\n 5:9 \r\n7\n' >"$work/lengths"
    ./fa_bench "${small[@]}" --source tests/features/plain.cu --lengths "@$work/lengths" --json "$work/r.json"
    record_holds "$work/r.json" '.problem.lengths == {q: [5, 7], kv: [9, 7]}'
}

@test "mma and wgmma take kernels of their own for e4m3, with features together; these take nothing else" {
    local tile
    passes --kernel mma --dtype e4m3 --lengths 17,0,33:5,40:70 --window 30,3 --softcap 2 --sinks --alibi --dim-v 48 \
        --causal --dist outlier --strides padded
    record_holds "$work/r.json" '.variant == "mma_fp8" and .config.n == 64'
    for tile in "--m 16 --warps 1 --n 32 --stages 3" "--m 64 --warps 2 --n 96 --swizzle 0" \
        "--m 128 --warps 8 --n 128"; do
        passes --kernel mma_fp8 --dtype e4m3 $tile --bias --mask tree --dim 48 --misalign 1
    done
    passes --kernel wgmma --arch sm_90a --dtype e4m3 --lengths 17,0,33:5,40:70 --window 30,3 --softcap 2 --sinks \
        --alibi --dim-v 48 --causal --dist outlier
    record_holds "$work/r.json" '.variant == "wgmma_fp8" and .config.n == 128'
    passes --kernel wgmma_fp8 --arch sm_90a --dtype e4m3 --n 64 --stages 1 --dim 144 --dim-v 160 --seq-kv 200
    refused 3 "wgmma_fp8 serves --dtype e4m3 only" ./fa_bench "${small[@]}" --kernel wgmma_fp8 --arch sm_90a
    refused 3 "mma_fp8 serves --dtype e4m3 only" ./fa_bench "${small[@]}" --kernel mma_fp8
    refused 3 "stages must be 2 or more" ./fa_bench "${small[@]}" --kernel mma_fp8 --dtype e4m3 --stages 1
    run -0 ./fa_bench --kernel mma --arch sm_89 --select
    [[ $output != *mma_fp8* ]]
}

@test "a batch beside lengths that say another one is not used, and the head of a run says so" {
    run -0 ./fa_bench --kernel light --device emu --seeds 1 --heads 2 --dim 16 --lengths 3:10,1:4 --batch 5
    [[ $output == *"B=2 H=2 (B by --lengths, not --batch 5)"* ]]
    run -0 ./fa_bench --kernel light --device emu --seeds 1 --heads 2 --dim 16 --lengths 3:10,1:4
    [[ $output != *"--batch"* ]]
}

@test "--dump writes the page table, sinks and slopes: an output follows from them; pages that nothing names hold NaN" {
    ./fa_bench --kernel light --device emu --seeds 1 --heads 2 --kv-heads 1 --dim 16 --page-size 4 \
        --lengths 3:10,1:4,2:0 --sinks --alibi --bias --dump "$work" --quiet
    python3 - "$work" <<'END'
import math, pathlib, struct, sys
def load(name, letter):
    file = pathlib.Path(sys.argv[1], name + ".npy").read_bytes()
    return [value for value, in struct.iter_unpack("<" + letter, file[10 + int.from_bytes(file[8:10], "little"):])]
starts, table, k = load("page_start", "i"), load("page_table", "i"), load("k", "e")
assert starts == [0, 3, 4, 4], starts
named = {table[starts[b] + j // 4] * 4 + j % 4 for b, keys in enumerate((10, 4)) for j in range(keys)}
assert len(named) == 14 and named == {row for row in range(len(k) // 16) if not math.isnan(sum(k[row * 16:][:16]))}
q, v, o, bias, slopes, sinks = (load(name, letter) for name, letter in zip("q v o bias slopes sinks".split(), "eeeeff"))
row, first, planes = 3, table[3] * 4 * 16, len(bias) // (3 * 10) # the sequence of one query and 4 keys
for head in range(2):
    plane = {1: 0, 2: head, 6: 2 + head}[planes]
    weights = [math.exp(sum(a * b for a, b in zip(q[(head * 6 + row) * 16:][:16], k[first + 16 * j:][:16])) / 4
                        - slopes[2 + head] * (3 - j) + bias[plane * 30 + j]) for j in range(4)]
    total = sum(weights) + math.exp(sinks[head])
    for d in range(16):
        want = sum(w * v[first + 16 * j + d] for j, w in enumerate(weights)) / total
        assert abs(o[(head * 6 + row) * 16 + d] - want) < 2e-3, (head, d, want)
END
}

# bats file_tags=slow
@test "every kernel passes on each feature that it serves, and refuses the others by name" {
    local kernel kernels word served=0 options dims
    kernels=$(./fa_bench --list-kernels --json - |
        jq -r '.[] | select(.kind == "hand" and .op == "forward" and .dtype == null) |
            select(.emulated and .missing == null) | .name')
    for kernel in $kernels; do
        dims=$(dims_of "$kernel")
        for word in varlen window chunk softcap sink alibi bias mask dim_v paged; do
            options=$(options_of $word)
            [[ $word != dim_v || -z $dims ]] || options=$dims
            run ./fa_bench "${small[@]}" --kernel "$kernel" $dims $options --json "$work/r.json"
            if [[ $output =~ "takes pages of a multiple of "([0-9]+)" rows: not --page-size" ]]; then
                options="--page-size ${BASH_REMATCH[1]}"
                run ./fa_bench "${small[@]}" --kernel "$kernel" $dims $options --json "$work/r.json"
            fi
            if [ "$status" -eq 3 ]; then
                [[ $output == *"does not serve ${options%% *}"* ]] || { echo "$kernel $word: $output"; return 1; }
                continue
            fi
            [ "$status" -eq 0 ] || { echo "$kernel $word: $output"; return 1; }
            served=$((served + 1))
            passes --kernel "$kernel" $dims $options --causal --dtype bf16 --no-ptxas
        done
    done
    [ $served -ge 9 ]
    for word in varlen window chunk softcap sink alibi bias mask dim_v paged; do # without --kernel one is found
        passes $(options_of $word) --no-ptxas
    done
}

@test "wgmma_mla has no race in any schedule: heads 8 to 128, 1 to 4 queries, pages and none, both types" {
    local schedule options
    for schedule in ascending descending greedy random; do
        while read -r options; do
            passes "${mla[@]}" --race --schedule $schedule --seeds 1 --no-ptxas $options
        done <<'EOF'
--heads 8 --seq 1 --seq-kv 330 --splits 1
--heads 16 --seq 4 --seq-kv 200 --splits 2 --causal --dtype bf16
--heads 128 --seq 2 --seq-kv 130 --splits 1 --causal --page-size 64
--heads 64 --lengths 1:200,3:2,2:321 --splits 3 --causal --page-size 128 --strides padded
--heads 63 --kv-heads 3 --lengths 1:200,3:2,2:321 --splits 4 --dtype bf16
--heads 126 --seq 3 --seq-kv 260 --splits 40 --page-size 64 --dist rising
EOF
    done
}
