#!/usr/bin/env bash
# A `! command` in a bats test: errexit passes over it, so that it fails no test unless it is the last command.
#
# usage: scripts/house/check_bats.sh [FILE...]
# FILE: default every .bats file and helper of tests/. Write 'run ! command' or 'if command; then return 1; fi'.
# Exit: 0, 1 and a line for each '! command' without '|| ...' behind it, 2 usage.
set -euo pipefail

# shellcheck disable=SC1091 # the file beside it, whatever the folder
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
# shellcheck disable=SC2034 # parse_options reads it
arguments=words
parse_options "$@"
if [[ ${#words[@]} -eq 0 ]]; then
    cd "$(dirname "${BASH_SOURCE[0]}")/../.."
    words=(tests/cli/*.ba[ts][sh]*)
fi
need_inputs "${words[@]}"
# A command over several lines is one. What stands in [[ ]] or belongs to an if or a loop is a condition.
awk 'FNR == 1 {command = ""}
    {
        if (command == "") first = FNR
        command = command $0
        if ($0 ~ /(\\|[|&])$/) next
        text = command
        command = ""
        gsub(/\[\[[^]]*\]\]/, "", text)
        if (text ~ /^ *(if|elif|while|until) / || text !~ /(^ *|&& |; |do |then )! /) next
        sub(/.*(^ *|&& |; |do |then )! /, "", text)
        if (text !~ / \|\| /) {
            print FILENAME ":" first ": a \"! command\" that fails no test: run ! command"
            bad = 1
        }
    }
    END {exit bad}' "${words[@]}"
