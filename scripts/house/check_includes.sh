#!/usr/bin/env bash
# The rooms of src/ point one way (docs/architecture.md): a file includes headers of its own room or of earlier ones.
# The rooms of src/emu/ do, too; what lies beside them is after them.
#
# usage: scripts/house/check_includes.sh
# Exit: 0, 2 usage, 1 and a line per include that points to a later room, or a circle, and per source file whose own
# header is not first or lacks a function.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
parse_options "$@"

rooms=(base input ptx compile device cuda emu/core emu/race emu/ptx emu/hopper emu run check timing report
    child pool main) # the last three are files
pure='^src/(base|input|ptx|check|timing|report)/' # these rooms know nothing of CUDA
rank_of() { # PATH below src/
    local room=${1%/*} i
    [[ $1 == */* ]] || room=${1%.*}
    for i in "${!rooms[@]}"; do
        [[ ${rooms[i]} != "$room" ]] || { echo "$i"; return; }
    done
    echo -1
}

bad=0
say() {
    echo "$*"
    bad=1
}
mapfile -t includes < <(grep -HoE '^#include "[^"]+"' src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] |
    sed -E 's/#include "([^"]+)"/\1/' |
    grep -vE '^src/emu/include/|:((fa_params|fa_launch|fa_library)\.h|kernels/.*|git_version\.h|.*\.def)$')
for line in "${includes[@]}"; do
    file=${line%%:*} included=${line#*:}
    from=$(rank_of "${file#src/}")
    to=$(rank_of "$included")
    if ((from < 0)); then
        say "$file lies in no room (scripts/house/check_includes.sh lists them)"
    elif [[ ! -e src/$included ]]; then
        say "$file includes $included: headers are named from src/ on, room first"
    elif ((to > from)); then
        say "$file includes $included, of a later room"
    fi
    [[ ! $file =~ $pure || ! $included =~ ^cuda/ ]] || say "$file is pure and includes $included"
done

# A source file includes the header of its own name first, and that header declares every function that others may call.
own=$(awk '
    FNR == 1 {
        header = FILENAME
        sub(/\.c$/, ".h", header)
        text = ""
        while ((getline line <header) > 0)
            text = text line "\n"
        close(header)
        includes = 0
    }
    /^#include/ && !includes++ && "src/" substr($2, 2, length($2) - 2) != header {
        print FILENAME " does not include " header " first"
    }
    /^[A-Za-z]/ && !/^(_Noreturn )?static / && !/;$/ && match($0, /fa_[a-z0-9_]+\(/) {
        if (!index(text, substr($0, RSTART, RLENGTH)))
            print FILENAME " defines " substr($0, RSTART, RLENGTH - 1) ", which " header " does not declare"
    }' src/*/*.c src/*/*/*.c)
[[ -z $own ]] || say "$own"

# A unit is a source file with its header; a cycle between units is refused wherever it lies.
if ! cycles=$(printf '%s\n' "${includes[@]}" |
    sed -E 's|^src/||; s/\.[ch](:|$)/\1/g; s/:/ /' | awk '$1 != $2' | sort -u | tsort 2>&1 >/dev/null); then
    cycles=${cycles//tsort: /}
    say "files that include each other in a circle: ${cycles//$'\n'/ }"
fi
exit $bad
