#!/usr/bin/env bash
# One variant: compiled, proven, timed; one line for people, one record for machines, the bench's exit code.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evo_test_one.sh M WARPS VEC [--kernel NAME] [--json FILE] [--dry-run] [-- more fa_bench options]
The kernel is --kernel, else FA_KERNEL, else the bench's default. The record goes to FILE (default: a temporary, thrown away).
FA_BENCH names the binary (default ./fa_bench). Exit codes are fa_bench's.
EOF
}

die() {
    echo "evo_test_one.sh: $1" >&2
    exit 2
}

kernel=${FA_KERNEL:-} json='' dry_run=0
knobs=() more=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --kernel | --json)
            [[ $# -ge 2 ]] || die "$1 needs a value"
            case $1 in --kernel) kernel=$2 ;; --json) json=$2 ;; esac
            shift
            ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        --) shift; more=("$@"); break ;;
        -*) die "unknown option $1 (see --help)" ;;
        *) knobs+=("$1") ;;
    esac
    shift
done
[[ ${#knobs[@]} -eq 3 ]] || die "takes M WARPS VEC (see --help)"

bench=${FA_BENCH:-$(dirname "${BASH_SOURCE[0]}")/../fa_bench}
[[ -x $bench ]] || { echo "evo_test_one.sh: no $bench: run make" >&2; exit 4; }
command -v jq >/dev/null || { echo "evo_test_one.sh: no jq: run scripts/setup.sh" >&2; exit 4; }
command=("$bench" ${kernel:+--kernel "$kernel"} --m "${knobs[0]}" --warps "${knobs[1]}" --vec "${knobs[2]}" "${more[@]}")
if [[ $dry_run -eq 1 ]]; then
    echo "${command[*]}"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record=${json:-$work/record.json}
code=0
"${command[@]}" --quiet --json "$record" 2>"$work/err" || code=$?
if [[ $code -eq 2 ]]; then
    cat "$work/err" >&2
    exit 2
fi
if ! jq -es -f "$(dirname "${BASH_SOURCE[0]}")/record.jq" "$record" >/dev/null 2>&1; then
    echo "evo_test_one.sh: fa_bench (exit $code) left no whole record in $record: $(head -c 300 "$work/err" | head -n 1)" >&2
    exit 6
fi
jq -r --arg m "${knobs[0]}" --arg w "${knobs[1]}" --arg v "${knobs[2]}" '
    def us: if . == null then "-" else "\(. * 100 | round / 100) us" end;
    "M=\($m) W=\($w) V=\($v)  \(.status | ascii_upcase)  p50 \(.timing.p50_us | us)  p90 \(.timing.p90_us | us)  " +
    "regs \(.ptxas.registers // "-")  smem \(.ptxas.smem_total_bytes // "-")" +
    (if .reason then "  \(.reason | split("\n")[0])" else "" end)' "$record"
exit "$code"
