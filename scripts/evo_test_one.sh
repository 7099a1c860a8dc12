#!/usr/bin/env bash
# One variant: compiled, proven, timed; one line for people, one record for machines, the bench's exit code.
#
# usage: scripts/evo_test_one.sh M WARPS VEC [--kernel NAME | --source FILE.cu] [--json FILE] [--dry-run]
#                                [-- more fa_bench options]
# The kernel is --source, else --kernel, else FA_KERNEL, else the bench's default. The record goes to FILE
# (default: nowhere); with "-" to standard output, and the line to standard error.
# FA_BENCH names the binary (default: the repository's). Exit codes are fa_bench's.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # FILE is below the caller's folder, so that one stays
. "$here/lib/common.sh"
fail_with_error
opt=([kernel]=${FA_KERNEL:-} [source]='' [json]='')
flag=([dry-run]=0)
arguments=words
parse_options "$@"
[[ ${#words[@]} -eq 3 ]] || die 2 "takes M WARPS VEC (see --help)"
kernel=${opt[source]:+source:${opt[source]}}
kernel=${kernel:-${opt[kernel]}}
bench=${FA_BENCH:-$(realpath "$here/..")/fa_bench}
need_bench
command=("$bench" ${kernel:+"$(kernel_flag "$kernel")" "${kernel#source:}"} --m "${words[0]}"
    --warps "${words[1]}" --vec "${words[2]}" "${more[@]}")
if [[ ${flag[dry-run]} -eq 1 ]]; then
    echo "${command[*]}"
    exit 0
fi

make_work
record=${opt[json]:-$work/record.json}
[[ $record != - ]] || record=$work/record.json
code=0
progress "compiling, checking and timing ${kernel:-the default kernel}"
"${command[@]}" --quiet --json "$record" 2>"$work/err" || code=$?
progress
if [[ $code -eq 2 ]]; then
    cat "$work/err" >&2
    exit 2
fi
jqf kinds/record -es "$record" >/dev/null 2>&1 ||
    die 6 "fa_bench (exit $code) left no whole record in $record: $(head -c 300 "$work/err" | head -n 1)"
line=$(jqf evo/one_line -r --arg knobs "M=${words[0]} W=${words[1]} V=${words[2]}" "$record")
if [[ ${opt[json]} == - ]]; then
    cat "$record"
    echo "$line" >&2
else
    echo "$line"
fi
exit "$code"
