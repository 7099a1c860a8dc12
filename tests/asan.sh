#!/usr/bin/env bash
# The whole driver under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer: builds a copy of the tree with
# them and runs the suites.
#
# usage: tests/asan.sh [--json FILE] [SUITE...]
#   SUITE         of tests/run_all.sh (default: unit emu cli)
#   --json FILE   summary (default build/asan.json)
# Every process of the bench is checked for leaks as it exits, the child that compiles and checks included; a leak, an
# error or undefined behaviour ends it with an exit code that no test expects. That LeakSanitizer works here is tried
# first: exit 4 where it does not.
# Exit: 0 all passed, 1 a test failed, 2 usage, 4 no sanitizers here. Also: make test-asan.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
opt=([json]=build/asan.json)
arguments=words
parse_options "$@"
need_jq
suites=("${words[@]}")
[[ ${#suites[@]} -gt 0 ]] || suites=(unit emu cli)
mkdir -p "$(dirname "${opt[json]}")" build
json=$(realpath "${opt[json]}")
make_work

# A program that leaks must be told.
cat >"$work/leak.c" <<'END'
#include <stdlib.h>
int main(void) { volatile char *p = malloc(10); p[0] = 1; p = NULL; return 0; }
END
if ! "${CC:-cc}" -fsanitize=address,undefined -o "$work/leak" "$work/leak.c" 2>"$work/said" ||
    "$work/leak" >"$work/said" 2>&1 || ! grep -q 'LeakSanitizer: detected memory leaks' "$work/said"; then
    die 4 "NOT-RUN: no AddressSanitizer, or its LeakSanitizer finds nothing here: $(head -n 1 "$work/said")"
fi

# A copy: the binary lies in the root of the tree, and the plain one stays what it is. Objects are kept from run to run.
tree=build/asan-tree
mkdir -p "$tree"
find "$tree" -mindepth 1 -maxdepth 1 ! -name build-asan -exec rm -rf {} + # what the tree has no more
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do
    [[ ! -e $file ]] || printf '%s\0' "$file"
done | tar cf - --null -T - | tar xf - -C "$tree"
cd "$tree"
make -s -j"$(nproc)" SAN=address,undefined BUILD=build-asan all test-binaries
code=0
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=1 TEST_TIMEOUT=${TEST_TIMEOUT:-3000} BUILD=build-asan \
    tests/run_all.sh --all "${suites[@]}" | tee "$work/out" || code=$?
tail -n 1 "$work/out" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' >"$work/counts"
read -r passed failed skipped <"$work/counts"
jq -n --argjson passed "$passed" --argjson failed "$failed" --argjson skipped "$skipped" --arg suites "${suites[*]}" \
    '{what: "asan", sanitizers: "address, undefined, leak"} + $ARGS.named' >"$json"
exit $code
