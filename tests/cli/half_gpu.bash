# A bench whose emulator and compiler are real and whose GPU is made up: --device cuda answers with records at once, any
# other command is ./fa_bench. The incumbent takes 100 us, the candidate 20 us at M=64 and WARPS=4, and 20 us more for
# each doubling away from there. Files of $STUB: status (of every GPU run), no_gpu, noise (A/A), bound (microseconds of
# the candidate k; 20 of any other), few (samples: no interval), commands.
load helper

make_half_gpu() {
    export STUB=$work/stub FA_BENCH=$work/fa_half REAL_BENCH=$PWD/fa_bench
    mkdir -p "$STUB"
    : >"$STUB/commands"
    executable "$FA_BENCH" <<'STUB_END'
set -eu
[[ -z ${FA_GPU_GATE:-} ]] || flock -s "$FA_GPU_GATE" true
[[ $* != *--runs* || $* == *--select* ]] || echo "$*" >>"$STUB/commands"
if [[ $* == *--runs* && $* == *--bound* && -e $STUB/bound ]]; then
    "$REAL_BENCH" "$@" | jq -c --argjson us "$(<"$STUB/bound")" '
        .bound = {us: (if .kernel == "k" then $us else 20 end), binds: "tensor", second: "issue"}'
    exit
fi
[[ " $* " == *" --device cuda "* ]] || exec "$REAL_BENCH" "$@"
m=64 warps=4 runs='' noise=0.002 status=pass
[[ ! -e $STUB/noise ]] || noise=$(<"$STUB/noise")
[[ ! -e $STUB/status || $* != *--runs* ]] || status=$(<"$STUB/status")
[[ ! -e $STUB/no_gpu ]] || status=not_run
while [[ $# -gt 0 ]]; do
    case $1 in
        --m) m=$2 ;; --warps) warps=$2 ;; --runs) runs=$2 ;;
    esac
    shift
done
few=false
[[ ! -e $STUB/few ]] || few=true
if [[ -n $runs ]]; then cat "$runs"; else echo; fi |
    jq -Rc --argjson few "$few" --argjson m "$m" --argjson warps "$warps" --argjson noise "$noise" \
        --arg status "$status" '
        (20 * (1 + (($m | log2) - 6 | fabs) + (($warps | log2) - 2 | fabs))) as $us |
        (100 / $us) as $ratio |
        {schema: "fa_bench.result/1", status: $status, reason: (if $status == "pass" then null else "made up" end),
         device: (if $status == "not_run" then null else {backend: "cuda", name: "NVIDIA Half", arch: "sm_89"} end)} +
        if $status != "pass" then {} else {
            ptxas: {registers: 64, smem_total_bytes: 0, spill_store_bytes: 0}, throughput: {fraction_of_peak: 0.25},
            timing: {p50_us: $us, impossible: false},
            vs: {ratio: $ratio, ratio_ci95: (if $few then [null, null] else [$ratio * 0.99, $ratio * 1.01] end),
                 aa_noise: (if $few then null else $noise end), other_p50_us: 100,
                 same_code: false, check: {passed: true}}} end'
STUB_END
}
