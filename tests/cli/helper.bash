# Shared by the bats files: the cache of all tests, a folder of their own, what a record must be, how to wait.
bats_require_minimum_version 1.5.0 # run ! COMMAND

setup() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/build/test-cache}
    work=$(mktemp -d)
    begun=$EPOCHREALTIME
    prepare
}
prepare() { :; } # what each test of a file begins with: the file defines it

# CPU seconds of the test and all it waited for, its wall seconds, its name: tests/run_all.sh shows the largest.
note_times() { # FILE
    times >"$work/times"
    local name="${BATS_TEST_FILENAME##*/}: $BATS_TEST_DESCRIPTION"
    awk -v OFS='\t' -v begun="$begun" -v now="$EPOCHREALTIME" -v name="$name" '
        {for (i = 1; i <= NF; i++) {split($i, part, /[ms]/); cpu += 60 * part[1] + part[2]}}
        END {printf "%.2f\t%.2f\t%s\n", cpu, now - begun, name}' "$work/times" >>"$1"
}

teardown() {
    [[ -z ${FA_TEST_OUT:-} ]] || note_times "$FA_TEST_OUT/times.tsv"
    chmod -R u+w "$work" 2>/dev/null
    rm -rf "$work"
}

# Code, for sed, that waits for ever in an emulated kernel and leaves the processor to others.
hangs='\n#ifdef FA_EMU\n    timespec day[]{{86400, 0}};\n    while (nanosleep(day, nullptr) != 0);\n#endif\n'

# A small problem that takes a moment on the emulator.
small=(--device emu --batch 1 --heads 2 --seq 33 --dim 16 --seeds 1)

# The dims, as options, of a kernel that serves no others: those of the sentence with which it refuses. Else nothing.
dims_of() { # KERNEL [OPTIONS...]
    ./fa_bench "${small[@]}" --kernel "$@" --quiet 2>&1 | grep -oP "infeasible: $1 serves \K--dim .*(?= only$)" || true
}

# The schema is checked once for all records of a file, because its validator takes longer to start than most runs. A
# record that is not valid fails "teardown_file", with the name of its test.
keep_for_schema() { # FILE
    local name=${BATS_TEST_DESCRIPTION//\//_}
    mkdir -p "$BATS_FILE_TMPDIR/records"
    cp "$1" "$(mktemp "$BATS_FILE_TMPDIR/records/${name:0:200}.XXXXXX")"
}

teardown_file() {
    [[ ! -d $BATS_FILE_TMPDIR/records ]] || "${BASH_SOURCE[0]%/*}/../validate_record.py" "$BATS_FILE_TMPDIR"/records/*
}

# The record validates against the schema, and each jq expression given is true of it.
record_holds() { # FILE EXPRESSION...
    local file=$1 expression
    shift
    keep_for_schema "$file" || return 1
    jq -e "$(printf '(%s) and ' "$@") true" "$file" >/dev/null 2>&1 && return 0 # one start of jq, not one for each
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

# A kernel $work/k.cu whose threads read their neighbours' word of shared memory, with lines between and behind.
neighbours() { # BETWEEN [BEHIND]
    cp tests/cheats/honest.cuh "$work/"
    sed "/^    const place at/ {
        i \    __shared__ float one_s[FA_M];
        i \    one_s[threadIdx.x] = 1.0f;
        i \    $1
        i \    const float one = one_s[(threadIdx.x + FA_M - 1) % FA_M];
        i \    ${2:-// nothing}
        i \    if (one == 2.0f)
        i \        return;
    }" tests/cheats/honest.cu >"$work/k.cu"
}

executable() { # FILE: a program, from standard input, of bash where its first line names no other; its folder is made
    mkdir -p "${1%/*}"
    sed -e '1{/^#!/!i #!/usr/bin/env bash' -e '}' >"$1"
    chmod +x "$1"
}

# The exit code of a command of this shell: `run` has one of its own, which cannot wait for a child.
exits() { # CODE COMMAND...
    local code=0
    "${@:2}" || code=$?
    [[ $code -eq $1 ]] || { echo "exit $code, not $1: ${*:2}"; return 1; }
}

# Waits for a condition, not for a time: tries COMMAND until it succeeds. The limit is for what hangs.
eventually() { # COMMAND...
    local end=$((SECONDS + 300))
    until "$@" >/dev/null 2>&1; do
        [[ $SECONDS -lt $end ]] || { echo "never came true: $*"; return 1; }
        sleep 0.05
    done
}

lines() { # FILE COUNT: it has as many, or more
    [[ $(wc -l <"$1") -ge $2 ]]
}

# The source of the kernel that a process has loaded last.
loaded_source() { # PID
    local object
    object=$(sed -n 's|^[^/]*\(/.*/module\.so\)$|\1|p' "/proc/$1/maps" | tail -n 1)
    echo "${object%/*}/source.cu"
}

# The child of a fa_bench, once it has loaded a kernel whose source contains WORDS.
child_runs() { # PID WORDS
    grep -qF -- "$2" "$(loaded_source "$(pgrep -P "$1" | head -n 1)")"
}

is_gone() { # PID: ended, or a zombie that nobody has reaped yet
    [[ ! -e /proc/$1/stat || $(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null || echo Z) == Z ]]
}
