# A fa_bench that answers at once with made-up records, for the logic around it. Its world is the files of $STUB:
# times (KERNEL M WARPS US per line), source.KERNEL (contents: its sha), wrong and flaky (KERNEL M WARPS: never right, right on seed 42
# alone), hold (N: the first N runs end at once, those after them wait until the file is gone), no_gpu (--device cuda is not run).
# --cubin writes KERNEL M WARPS. Each run that is not --compile-only adds a line to runs.
make_stub() {
    export STUB=$work/stub FA_BENCH=$work/fa_stub
    mkdir -p "$STUB"
    printf '%s\n' 'one 16 4 50' 'one 16 8 40' 'one 32 4 60' 'one 32 8 45' 'two 16 4 90' 'two 16 8 80' 'two 32 4 70' 'two 32 8 75' >"$STUB/times"
    printf '%064d' 1 >"$STUB/source.one"
    printf '%064d' 2 >"$STUB/source.two"
    touch "$STUB/wrong" "$STUB/flaky" "$STUB/runs"
    cat >"$FA_BENCH" <<'STUB_END'
#!/usr/bin/env bash
set -eu
kernel=one m=16 warps=4 json=- cubin='' compile=0 vs='' seed=42 atol=0.001 seq=512 where=auto
registry='[{"name":"one","kind":"hand","default":true,"variant_of":null,"tensor_cores":"none","emulated":true,"defaults":{"m":16},"values":{"m":[16,32],"n":[64],"warps":[4,8],"acc":["fp32"],"maxreg":[0]}},
{"name":"two","kind":"hand","default":false,"variant_of":null,"tensor_cores":"wmma","emulated":true,"defaults":{"m":16},"values":{"m":[16,32],"n":[64],"warps":[4,8],"acc":["fp32"],"maxreg":[0]}},
{"name":"lib","kind":"library","default":false,"variant_of":null,"tensor_cores":"none","emulated":false}]'
if [[ $* == *--runs* ]]; then # each line of the file is a run; the code is the first that is not 0
    common=() first=0 number=0 jsonl=/dev/null
    while [[ $# -gt 0 ]]; do
        case $1 in
            --runs) runs=$2; [[ $2 != - ]] || runs=/dev/stdin; shift ;;
            --json) jsonl=$2; shift ;;
            *) common+=("$1") ;;
        esac
        shift
    done
    : >"$jsonl"
    while read -r line; do
        code=0 number=$((number + 1))
        "$0" "${common[@]}" $line --json "$jsonl.one" || code=$?
        [[ ! -s $jsonl.one ]] || jq -c --argjson line $number '.provenance.line = $line' "$jsonl.one" >>"$jsonl"
        rm -f "$jsonl.one"
        [[ $first -ne 0 ]] || first=$code
    done <"$runs"
    exit "$first"
fi
given=$*
echo "$given" >>"$STUB/commands"
while [[ $# -gt 0 ]]; do
    case $1 in
        --list-kernels) echo "$registry"; exit 0 ;;
        --kernel) kernel=$2 ;; --m) m=$2 ;; --warps) warps=$2 ;; --json) json=$2 ;; --cubin) cubin=$2 ;; --vs) vs=$2 ;; --seed) seed=$2 ;; --atol) atol=$2 ;; --seq) seq=$2 ;;
        --compile-only) compile=1 ;;
        --device) where=$2 ;;
    esac
    shift
done
if [[ $where == cuda && -e $STUB/no_gpu ]]; then
    not_run='{"schema": "fa_bench.result/1", "status": "not_run", "reason": "no GPU in the stub", "device": null}'
    if [[ $json == - ]]; then echo "$not_run"; else echo "$not_run" >"$json"; fi
    exit 4
fi
[[ -z $cubin ]] || echo "$kernel $m $warps" >"$cubin"
time_of() { awk -v k="$1" -v m="$2" -v w="$3" '$1 == k && $2 == m && $3 == w {print $4}' "$STUB/times"; }
us=$(time_of "$kernel" "$m" "$warps") status=pass vs_record=null
if [[ $compile -eq 0 ]]; then
    echo "$kernel $m $warps${vs:+ vs $vs} seed $seed" >>"$STUB/runs"
    place=$(wc -l <"$STUB/runs") # exact enough: of two that begin at once, both may count the other
    while [[ -e $STUB/hold && $place -gt $(cat "$STUB/hold" 2>/dev/null || echo 0) ]]; do sleep 0.05; done
    if grep -qx "$kernel $m $warps" "$STUB/wrong"; then status=wrong us=null; fi
    if [[ -n ${BAD_ARGS:-} && $given == *"$BAD_ARGS"* ]]; then status=$BAD_STATUS us=null; fi
    if [[ $seed -ne 42 ]] && grep -qx "$kernel $m $warps" "$STUB/flaky"; then status=wrong us=null; fi
fi
if [[ -n $vs && $us != null ]]; then
    [[ $vs == *:* ]] || vs+=:m=16,warps=4
    other=$(time_of "${vs%%:*}" "$(sed 's/.*m=\([0-9]*\).*/\1/' <<<"$vs")" "$(sed 's/.*warps=\([0-9]*\).*/\1/' <<<"$vs")")
    vs_record=$(jq -nc --argjson a "$us" --argjson b "$other" --arg k "${vs%%:*}" '{kernel: $k, config: null, compiler: "made up 1.2", p50_us: $a, other_p50_us: $b, ratio: ($b / $a), ratio_ci95: [1, 1], accepted: ($b / $a > 1.03)}')
fi
record=$(jq -n --arg kernel "$kernel" --argjson m "$m" --argjson warps "$warps" --argjson us "$us" --arg status "$status" --argjson vs "$vs_record" --arg sha "$(cat "$STUB/source.$kernel")" \
    --argjson loose "$([[ $atol == 0.001 ]] && echo false || echo true)" --argjson seq "$seq" --argjson timed "$((1 - compile))" --arg device "$(cat "$STUB/device" 2>/dev/null || echo "NVIDIA Stub")" '
    {schema: "fa_bench.result/1", status: $status, reason: (if $status == "pass" then null else "made up" end), kernel: $kernel, variant: $kernel, config: {m: $m, n: 64, warps: $warps, acc: "fp32"},
     problem: {batch: 2, heads: 8, kv_heads: 8, seq_q: $seq, seq_kv: $seq, dim: 64, causal: false},
     device: {backend: "cuda", name: $device, arch: "sm_90", sm_count: 132}, ptxas: {arch: "sm_90a", registers: 64, smem_total_bytes: 1000, spill_store_bytes: 0},
     timing: (if $timed == 1 and $status == "pass" then {p50_us: $us, p90_us: ($us + 1), method: "graph", sm_clock_mhz: {p50: 1}, impossible: false} else null end), throughput: {tflops: 1},
     check: {passed: ($status == "pass"), loosened: $loose}, vs: $vs,
     provenance: {source_sha256: $sha, code_sha256: $sha, options: [], compiler: "stub 1", driver: "1", git: "stub", time: "2026-01-01T00:00:00Z"}}')
if [[ $json == - ]]; then echo "$record"; else echo "$record" >"$json"; fi
[[ $status != infeasible ]] || exit 3
[[ $status == pass ]] || exit 1
STUB_END
    chmod +x "$FA_BENCH"
}

timed_runs() { # that were neither a probe nor a comparison nor a confirmation
    grep -c 'seed 42$' "$STUB/runs"
}
