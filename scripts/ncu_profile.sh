#!/usr/bin/env bash
# Nsight Compute on one launch of one variant that passed its check: report, metrics as JSON, gates.
#
# usage: scripts/ncu_profile.sh [options] [fa_bench options, e.g. --kernel NAME --m 32 --warps 8 --vec 4]
#   --out DIR           report (.ncu-rep), its CSV, the record and the metrics (default: build/ncu)
#   --thresholds FILE   the gates (default: scripts/lib/ncu/thresholds.json)
#   --import CSV        judge a recorded report (ncu --import R --page raw --csv --print-units base) instead of
#                       profiling
#   --record FILE       with --import: the bench's record of that run
#   --dry-run           print the command, do nothing
# One launch of fa_kernel is profiled in a run that only checks (no timing loop, no clock changes). FA_BENCH names the
# binary (default ./fa_bench). Exit: 0 every gate passed, 1 a gate failed or the kernel is wrong or infeasible, 2 usage,
# 4 NOT-RUN (no ncu, no GPU, no permission, or a metric missing), 6 the table cannot be written.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
bench=${FA_BENCH:-$here/../fa_bench}
opt=([out]=$here/../build/ncu [thresholds]=$lib/ncu/thresholds.json [import]='' [record]='')
flag=([dry-run]=0)
arguments=all
parse_options "$@"
out=${opt[out]} thresholds=${opt[thresholds]} import=${opt[import]} record=${opt[record]}
options=("${words[@]}" "${more[@]}")
for word in "${options[@]}"; do
    case $word in
        --json | --timing | --seeds | --check | --device | --vs) die 2 "$word is this script's own (see --help)" ;;
    esac
done
need_jq
make_work
is_input "$thresholds" || die 2 "--thresholds takes a file of gates, not '$thresholds'"
read_json gate "$thresholds" >"$work/gates"
jq -es 'all(.[]; has("at_least") or has("at_most"))' "$work/gates" >/dev/null ||
    die 2 "--thresholds takes a file of gates, each with at_least or at_most, not '$thresholds'"

# Prints the table and leaves the code; RECORD may be missing.
judge() { # CSV RECORD RESULT
    local csv=$1 record=$2 result=$3 kernel='' tensor='null'
    if [[ -n $record && -x $bench ]]; then
        kernel=$(jq -r '.variant // .kernel // empty' "$record")
        tensor=$("$bench" --list-kernels --json - |
            jq -c --arg k "$kernel" '[.[] | select(.name == $k) | .tensor_cores][0]')
    fi
    jqf ncu/gates -Rs --slurpfile maps "$lib/ncu/metrics.json" --slurpfile gate_files "$thresholds" \
        --slurpfile records "${record:-/dev/null}" --argjson tensor_cores "$tensor" "$csv" >"$result"
    jqf ncu/text -r "$result" |
        awk -F'\t' 'NR == 1 {print; next} {printf "%-8s %-33s %14s  %-18s %s\n", $1, $2, $3, $4, $5}' >"$work/table"
    put_out '' <"$work/table"
    case $(jq -r .verdict "$result") in
        PASS) return 0 ;;
        FAIL) return 1 ;;
    esac
    jqf ncu/not_run -r "$result"
    return 4
}

if [[ -n $import ]]; then
    is_input "$import" || die 2 "--import takes a file that can be read, not '$import'"
    [[ -z $record ]] || is_input "$record" || die 2 "--record takes a file that can be read, not '$record'"
    [[ -z $record ]] || read_json record "$record" >/dev/null
    result=$work/result
    code=0
    judge "$import" "$record" "$result" || code=$?
    [[ $out == "$here/../build/ncu" ]] || { mkdir -p "$out" && cp "$result" "$out/$(basename "$import" .csv).json"; }
    exit "$code"
fi

metrics=$(jq -r '[.metrics[][]] | unique | join(",")' "$lib/ncu/metrics.json")
command=("$bench" "${options[@]}" --device cuda --timing none --seeds 1 --check cpu --quiet --json)
profile=(ncu --clock-control none --target-processes all -k fa_kernel --launch-count 1 --metrics "$metrics" -f -o)
if [[ ${flag[dry-run]} -eq 1 ]]; then
    echo "${profile[*]} $out/NAME ${command[*]} $out/NAME.record.json"
    exit 0
fi
need_bench
"$bench" "${options[@]}" --select --quiet >/dev/null || [[ $? -ne 2 ]] || exit 2
command -v ncu >/dev/null || die 4 "NOT-RUN: no ncu in PATH (it comes with the CUDA Toolkit: cuda-nsight-compute)"

mkdir -p "$out"
code=0
"${profile[@]}" "$work/report" "${command[@]}" "$work/record.json" >"$work/log" 2>&1 || code=$?
if [[ ! -s $work/record.json ]]; then
    cat "$work/log" >&2
    [[ $code -eq 2 ]] && exit 2
    die 4 "NOT-RUN: ncu could not run the bench"
fi
status=$(jq -r .status "$work/record.json")
reason=$(jq -r '.reason // ""' "$work/record.json")
case $status in
    pass) ;;
    not_run) die 4 "NOT-RUN: $reason" ;;
    *)
        echo "FAIL     $status: $reason"
        exit 1
        ;;
esac
name=$(jqf ncu/name -r "$work/record.json")
cp "$work/record.json" "$out/$name.record.json"
if grep -q ERR_NVGPUCTRPERM "$work/log"; then
    die 4 "NOT-RUN: no permission to read the GPU's counters (ERR_NVGPUCTRPERM).
Run as root, give the container CAP_SYS_ADMIN, or as root put
'options nvidia NVreg_RestrictProfilingToAdminUsers=0' into /etc/modprobe.d/ and load the driver again."
fi
[[ -s $work/report.ncu-rep ]] || { cat "$work/log" >&2; die 4 "NOT-RUN: ncu wrote no report"; }
cp "$work/report.ncu-rep" "$out/$name.ncu-rep"
ncu --import "$out/$name.ncu-rep" --page raw --csv --print-units base >"$out/$name.csv"
code=0
judge "$out/$name.csv" "$out/$name.record.json" "$out/$name.json" || code=$?
echo "report $out/$name.ncu-rep, metrics $out/$name.json"
exit "$code"
