# A fa_bench that answers at once with made-up records, for the logic around it. Its world is the files of $STUB:
# times (KERNEL M WARPS US per line), bounds (the same for --bound, and a file to wait for), source.KERNEL (contents:
# its sha), wrong and flaky (KERNEL M WARPS: never right, right on seed 42 alone), hold (N: the first N runs end at
# once, those after them wait until the file is gone), no_gpu (--device cuda is not run), no_lib (nor is lib).
# beats: --beat is heeded. too_large (KERNEL M WARPS). limits (KERNEL M WARPS US MAXREG
# BLOCKS): other times, with blocks on a multiprocessor. --cubin writes KERNEL M WARPS. Each run
# that is not --compile-only adds a line to runs; a warm-up of --runs (--timing none) does not.
load helper

make_stub() { # FILE...: of $STUB, without contents
    export STUB=$work/stub FA_BENCH=$work/fa_stub
    mkdir -p "$STUB"
    printf '%s\n' 'one 16 4 50' 'one 16 8 40' 'one 32 4 60' 'one 32 8 45' \
        'two 16 4 90' 'two 16 8 80' 'two 32 4 70' 'two 32 8 75' >"$STUB/times"
    printf '%064d' 1 >"$STUB/source.one"
    printf '%064d' 2 >"$STUB/source.two"
    touch "$STUB/wrong" "$STUB/flaky" "$STUB/runs" "${@/#/$STUB/}"
    executable "$FA_BENCH" <<'STUB_END'
# Shell words alone wherever they do: suites start this by the thousand.
set -eu
kernel=one m=16 warps=4 json=- cubin='' compile=0 vs='' seed=42 atol=0.001 seq=512 where=auto
keys='' beat='' maxreg=0 blocks=null rest=0 l2=warm persist=none
tiles='"defaults":{"m":16},"values":{"m":[16,32],"n":[64],"warps":[4,8],"acc":["fp32"],"maxreg":[0]}'
hand='"kind":"hand","variant_of":null,"emulated":true'
registry='[{"name":"one","default":true,"tensor_cores":"none",'$hand,$tiles'},
{"name":"two","default":false,"tensor_cores":"wmma",'$hand,$tiles'},
{"name":"lib","kind":"library","default":false,"variant_of":null,"tensor_cores":"none","emulated":false}]'
if [[ $* == *--runs* ]]; then # each line of the file is a run; the code is the first that is not 0
    common=() first=0 number=0 jsonl=/dev/null
    while [[ $# -gt 0 ]]; do
        case $1 in
            --runs) runs=$2; [[ $2 != - ]] || runs=/dev/stdin; shift ;;
            --json) jsonl=$2; shift ;;
            --stream) ;;
            *) common+=("$1") ;;
        esac
        shift
    done
    [[ $jsonl == - ]] || : >"$jsonl"
    one=$STUB/one.$$
    while read -r line; do
        code=0 number=$((number + 1))
        : >"$one"
        STUB_COMMAND="${common[*]} $line" STUB_LINE=$number "$0" "${common[@]}" $line --json "$one" || code=$?
        if [[ $jsonl == - ]]; then
            [[ -s $one ]] || exit 6 # a bench that died
            echo "$(<"$one")"
        else
            [[ ! -s $one ]] || echo "$(<"$one")" >>"$jsonl"
        fi
        [[ $first -ne 0 ]] || first=$code
    done <"$runs"
    rm -f "$one"
    exit "$first"
fi
given=$*
echo "$given" >>"$STUB/commands"
while [[ $# -gt 0 ]]; do
    case $1 in
        --list-kernels) echo "$registry"; exit 0 ;;
        --kernel) kernel=$2 ;; --m) m=$2 ;; --warps) warps=$2 ;; --json) json=$2 ;; --cubin) cubin=$2 ;;
        --vs) vs=$2 ;; --seed) seed=$2 ;; --atol) atol=$2 ;; --seq) seq=$2 ;; --device) where=$2 ;;
        --compile-only | --select) compile=1 ;; --seq-kv) keys=$2 ;; --rest-ms) rest=$2 ;; --beat) beat=$2 ;;
        --maxreg) maxreg=$2 ;;
        --l2) l2=$2 ;; --l2-persist) persist=$2 ;;
    esac
    shift
done
write() { # RECORD
    if [[ $json == - ]]; then echo "$1"; else echo "$1" >"$json"; fi
}
is_in() { # FILE LINE
    local line
    while read -r line; do
        [[ $line != "$2" ]] || return 0
    done <"$STUB/$1"
    return 1
}
time_of() { # KERNEL M WARPS: sets found
    local k m w time
    found=null
    while read -r k m w time; do
        [[ "$k $m $w" != "$1 $2 $3" ]] || found=$time
    done <"$STUB/times"
}
provenance=${STUB_LINE:+'"line":'$STUB_LINE',"command":"fa_bench '$STUB_COMMAND'",'}
if [[ $where == cuda && -e $STUB/no_gpu ]]; then
    not_run='"status":"not_run","reason":"no GPU in the stub","device":null'
    write '{"schema":"fa_bench.result/1",'"$not_run,\"provenance\":{${provenance%,}}}"
    exit 4
fi
if [[ $kernel == lib && -e $STUB/no_lib ]]; then
    write '{"schema":"fa_bench.result/1","status":"not_run","reason":"no library in the stub","provenance":{}}'
    exit 4
fi
[[ -z $cubin ]] || echo "$kernel $m $warps" >"$cubin"
time_of "$kernel" "$m" "$warps"
if [[ -e $STUB/limits ]]; then
    while read -r k w t us limit more; do
        [[ "$k $w $t $limit" != "$kernel $m $warps $maxreg" ]] || found=$us blocks=$more
    done <"$STUB/limits"
fi
us=$found status=pass vs_record=null timing=null reason=null loosened=false passed=false device='NVIDIA Stub'
if [[ $compile -eq 0 && (-z ${STUB_LINE:-} || $given != *"--timing none"*) ]]; then
    echo "$kernel $m $warps${vs:+ vs $vs} seed $seed" >>"$STUB/runs"
    if [[ -e $STUB/hold ]]; then
        place=$(wc -l <"$STUB/runs") # exact enough: of two that begin at once, both may count the other
        while [[ -e $STUB/hold && $place -gt $(cat "$STUB/hold" 2>/dev/null || echo 0) ]]; do sleep 0.05; done
    fi
fi
too_large=''
if [[ -e $STUB/too_large ]] && is_in too_large "$kernel $m $warps"; then
    status=infeasible us=null too_large='"9 bytes of shared memory per block against the limit of 8 on sm_90"'
fi
if [[ -n ${BAD_ARGS:-} && $given == *"$BAD_ARGS"* ]]; then status=$BAD_STATUS us=null; fi
if [[ $compile -eq 0 ]]; then
    if is_in wrong "$kernel $m $warps"; then status=wrong us=null; fi
    if [[ $seed -ne 42 ]] && is_in flaky "$kernel $m $warps"; then status=wrong us=null; fi
fi
if [[ -n $vs && $us != null ]]; then
    [[ $vs == *:* ]] || vs+=:m=16,warps=4
    [[ ,${vs#*:}, =~ ,m=([0-9]+), ]] && vs_m=${BASH_REMATCH[1]}
    [[ ,${vs#*:}, =~ ,warps=([0-9]+), ]] && vs_warps=${BASH_REMATCH[1]}
    time_of "${vs%%:*}" "$vs_m" "$vs_warps"
    vs_record=$(jq -nc --argjson a "$us" --argjson b "$found" --arg k "${vs%%:*}" '{kernel: $k, config: null,
        compiler: "made up 1.2", p50_us: $a, other_p50_us: $b, ratio: ($b / $a), ratio_ci95: [1, 1],
        accepted: ($b / $a > 1.03)}')
fi
whole=${us%%.*}
if [[ $status != pass ]]; then
    reason=${too_large:-'"made up"'}
else
    passed=true
    p90=$((whole + 1))${us#"$whole"}
    if [[ $compile -eq 0 ]]; then
        timing='{"p50_us":'$us',"p90_us":'$p90',"method":"graph","sm_clock_mhz":{"p50":1},"impossible":false,'
        timing+='"l2":"'$l2'","l2_persist":"'$persist'","pace":{"rest_ms":'$rest'},"percent_of_peak_at_clock":50}'
    fi
fi
beaten=null
if [[ $timing != null && -n $beat && -e $STUB/beats ]] && ((100 * whole > 105 * ${beat%%.*})); then
    timing=null beaten='{"by_us":'$beat',"at_least_us":'$us'}'
fi
[[ $atol == 0.001 ]] || loosened=true
[[ ! -e $STUB/device ]] || device=$(<"$STUB/device")
sha=$(<"$STUB/source.$kernel")
provenance+="\"source_sha256\":\"$sha\",\"code_sha256\":\"$sha\","
provenance+='"stage_s":{"check":0.25,"timing":0.5},'
provenance+='"options":[],"compiler":"stub 1","driver":"1","git":"stub","time":"2026-01-01T00:00:00Z"'
record='{"schema":"fa_bench.result/1","status":"'$status'","reason":'$reason','
record+='"kernel":"'$kernel'","variant":"'$kernel'",'
record+='"config":{"m":'$m',"n":64,"warps":'$warps',"acc":"fp32"},'
record+='"problem":{"batch":2,"heads":8,"kv_heads":8,"seq_q":'$seq',"seq_kv":'${keys:-$seq}','
record+='"dim":64,"causal":false},'
record+='"device":{"backend":"cuda","name":"'$device'","arch":"sm_90","sm_count":132,"clock_mhz_max":1000,'
record+='"l2_bytes":33554432},'
if [[ $given == *--bound* && -e $STUB/bounds ]]; then
    while read -r k w t us after; do
        [[ "$k $w $t" == "$kernel $m $warps" ]] || continue
        while [[ -n $after && ! -s $after ]]; do sleep 0.05; done
        record+='"bound":{"clocks":'$us'000,"sm_count":132,"clock_mhz_max":1000,"estimate_us_low":'$us'},'
    done <"$STUB/bounds"
fi
[[ ! -e $STUB/says ]] || record+=$(<"$STUB/says")
record+='"occupancy":{"blocks_per_sm":'$blocks'},'
record+='"ptxas":{"arch":"sm_90a","registers":64,"smem_total_bytes":1000,"spill_store_bytes":0},'
record+='"beaten":'$beaten,
record+='"timing":'$timing',"throughput":{"tflops":1},"check":{"passed":'$passed',"loosened":'$loosened'},'
write "$record\"vs\":$vs_record,\"provenance\":{$provenance}}"
[[ $status != infeasible ]] || exit 3
[[ $status == pass ]] || exit 1
STUB_END
}

timed_runs() { # that were neither a probe nor a comparison nor a confirmation
    grep -c 'seed 42$' "$STUB/runs"
}
