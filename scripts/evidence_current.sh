#!/usr/bin/env bash
# Which rows of the evidence were made with the machine code that compiles today? Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evidence_current.sh [options] FILE...
  --sample N    only N rows of each file, evenly spread over it (default 0: all)
  --jobs N      at once (default: the cores)
  --rows        a JSON line for each row instead of a line for each file: file, kernel, git, current
FILE: JSON or JSON lines, also compressed. Compiles the kernel of every row again with the row's own architecture, head
dim, mask and configuration, and compares the SHA-256 of the machine code with the row's code_sha256. A comment, a
rename or a moved file leaves every row current. A row with --vs is current when both sides are.
  - A row whose hash is null is not current; an infeasible one has no machine code and does not count.
  - A library has no machine code here: it is current while the registry has its name.
  - Rows with the same configuration are compiled once; fa_bench's own cache keeps what was compiled.
Exit: 0 whatever is current, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

die() { # CODE TEXT
    echo "evidence_current.sh: $2" >&2
    exit "$1"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=${FA_BENCH:-./fa_bench} lib=scripts/lib/evidence
sample=0 jobs=$(nproc) by_row=0 files=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --sample | --jobs)
            [[ ${2:-} =~ ^[0-9]+$ ]] || die 2 "$1 takes a whole number"
            case $1 in --sample) sample=$2 ;; --jobs) jobs=$2 ;; esac
            shift
            ;;
        --rows) by_row=1 ;;
        --help) usage; exit 0 ;;
        -*) die 2 "unknown option $1 (see --help)" ;;
        *) [[ -r $1 ]] || die 2 "cannot read $1"; files+=("$1") ;;
    esac
    shift
done
[[ ${#files[@]} -gt 0 ]] || die 2 "no FILE (see --help)"
[[ $jobs -gt 0 ]] || die 2 "--jobs takes a whole number from 1"
[[ -x $bench ]] || die 4 "no $bench: run make"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export bench work
kinds=$("$bench" --list-kernels --json - | jq -c 'map({(.name): .kind}) | add')
for file in "${files[@]}"; do
    zcat -f "$file" | jq -nc --arg file "$file" --argjson kinds "$kinds" -f $lib/rows.jq 2>/dev/null ||
        die 2 "$file is no JSON"
done | jq -cs --argjson sample "$sample" 'def spread: if $sample == 0 or length <= $sample then .
    else . as $all | [range($sample) | $all[. * ($all | length) / $sample | floor]] end;
    group_by(.file) | map(spread) | add // [] | .[]' >"$work/rows"
jq -r '.made_of[].options | values' "$work/rows" | sort -u >"$work/options"

compile_share() { # FILE: the options of each line, and the hash of the machine code, for those that compile
    "$bench" --compile-only --runs "$1" --quiet --json - 2>/dev/null |
        jq -c --rawfile options "$1" '{key: ($options | split("\n"))[.provenance.line - 1],
            value: (select(.status == "pass").provenance.code_sha256 // "none")}' || true
}
export -f compile_share
[[ ! -s $work/options ]] || split -a 4 -d -n "r/$jobs" "$work/options" "$work/share."
# shellcheck disable=SC2016 # expanded by the inner shell
find "$work" -name 'share.*' | sort |
    xargs -r -P "$jobs" -I{} bash -c 'compile_share "$1" >"$1.codes"' _ {}
find "$work" -name 'share.*.codes' -exec cat {} + | jq -s from_entries >"$work/codes"

jq -c --slurpfile codes "$work/codes" '
    .current = all(.made_of[]; if .options then $codes[0][.options] == .code else has("library") end) |
    del(.made_of)' "$work/rows" >"$work/current"
if [[ $by_row -eq 1 ]]; then
    cat "$work/current"
else
    for file in "${files[@]}"; do
        jq -rs --arg file "$file" 'map(select(.file == $file)) |
            "\($file): \(map(select(.current)) | length) of \(length) current"' "$work/current"
    done
fi
