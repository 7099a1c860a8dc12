#!/usr/bin/env bash
# Prints the hash of the machine code of every configuration that the registry's rules select. Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/code_hashes.sh [options]
  --kernel NAME    only this kernel and its variants (repeatable)
  --arch LIST      comma-separated (default sm_80,sm_89,sm_90a)
  --jobs N         at once (default: the cores)
  --dry-run        print how many configurations, compile nothing
Prints a line per (kernel, rule, dim, mask) and architecture: rule, options, and the SHA-256 of the machine code.
A comment, a rename or a moved file changes no line: compare two outputs with diff.
Exit: 0, 1 when a configuration does not compile, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/points.sh
opt=([arch]='sm_80,sm_89,sm_90a' [sample]=0 [jobs]=$(nproc)) flag=([dry-run]=0)
parse_options "$@"

"$bench" --list-kernels --json - |
    jq -r --argjson only "$only" --arg archs "${opt[arch]}" -f scripts/lib/code_hashes.jq >"$work/rules"
sed 's/ #.*//' "$work/rules" | sort -u >"$work/all" # two rules may select one configuration
choose_points >"$work/count"

export run_options='--compile-only'
# shellcheck disable=SC2016 # jq's
export line='{point: $point, status, reason, code_sha256: .provenance.code_sha256}'
run_points "$work/out"

jq -r --rawfile rules "$work/rules" -s -f /dev/fd/3 "$work/out" 3<<'EOF'
(map({key: .point, value: .}) | from_entries) as $by_point |
$rules | split("\n")[] | select(. != "") | split(" #") as [$point, $rule] | $by_point[$point] |
"\($rule) \($point) \(.code_sha256 // "\(.status): \(.reason)")"
EOF
! jq -e 'select(.status != "pass")' "$work/out" >/dev/null
