# Shared by the bats files: a cache and a folder of their own, and what a record must be.
setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export XDG_CACHE_HOME=${FA_TEST_OUT:-$PWD/build/test}/cache
    work=$(mktemp -d)
}

teardown() {
    chmod -R u+w "$work" 2>/dev/null
    rm -rf "$work"
}

# A small problem that takes a moment on the emulator.
small=(--device emu --batch 1 --heads 2 --seq 33 --dim 16 --seeds 1)

# The record validates against the schema, and each jq expression given is true of it.
record_holds() { # FILE EXPRESSION...
    local file=$1 expression
    shift
    tests/validate_record.py "$file" || return 1
    for expression in "$@"; do
        jq -e "$expression" "$file" >/dev/null || { echo "not true of $file: $expression"; jq . "$file"; return 1; }
    done
}

# Exactly one line on stderr, the exit code, nothing on stdout, and the words in it.
refused() { # CODE WORDS COMMAND...
    local code=$1 words=$2 got=0
    shift 2
    "$@" >"$work/out" 2>"$work/err" || got=$?
    [[ $got -eq $code ]] || { echo "exit $got, not $code"; cat "$work/err"; return 1; }
    [[ $(wc -l <"$work/err") -eq 1 ]] || { echo "stderr is not one line:"; cat "$work/err"; return 1; }
    grep -qF -- "$words" "$work/err" || { echo "no '$words' in:"; cat "$work/err"; return 1; }
    [[ ! -s $work/out ]] || { echo "stdout:"; cat "$work/out"; return 1; }
}

# Kernels under ThreadSanitizer need a fa_bench that is not under AddressSanitizer itself (tests/asan.sh).
needs_race() {
    ! ldd ./fa_bench | grep -q libasan || skip "fa_bench is under AddressSanitizer: no other sanitizer beside it"
}

# Kills a process that has a child: the child is gone soon, or a zombie nobody has reaped yet.
child_dies_with() { # PID
    local child
    child=$(pgrep -P "$1" | head -n 1)
    kill -9 "$1"
    wait "$1" || true
    sleep 0.5
    [ -n "$child" ]
    [[ ! -e /proc/$child/stat || $(cut -d' ' -f3 "/proc/$child/stat") == Z ]]
}
