#!/usr/bin/env bats
# Bad input and a hostile folder: nothing hangs, nothing is overwritten that should not be, every record is valid UTF-8.
load helper

bench=(timeout 120 ./fa_bench)

@test "a pipe that nobody writes to, or a device, as an input file does not hang" {
    mkfifo "$work/pipe"
    mkdir "$work/npy"
    mkfifo "$work/npy/q.npy"
    refused 2 "no run in" "${bench[@]}" --runs "$work/pipe"
    refused 2 "that can be read" "${bench[@]}" --runs /dev/zero
    refused 2 "that can be read" "${bench[@]}" --runs "$work"
    for file in "$work/pipe" /dev/zero "$work"; do
        for option in --source --library; do
            refused 2 "$option takes a " "${bench[@]}" $option "$file" --quiet
        done
        refused 2 "takes a file that can be read" "${bench[@]}" --kernel light --vs "source:$file" --quiet
        refused 2 "takes a folder that can be read" "${bench[@]}" --source examples/plain.cu --include "$work/pipe"
    done
    run -2 "${bench[@]}" --kernel light "${small[@]}" --load "$work/npy" --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "usage"' '.reason | test("not a regular file")'
    refused 2 "q.npy: not a regular file" "${bench[@]}" --kernel light --load "$work/npy"
}

@test ".npy files of another version or rank are refused by what they are, not by a size that nobody gave" {
    ./fa_bench --kernel light "${small[@]}" --quiet --dump "$work/npy"
    loads() { # PATTERN WITH
        cp -r "$work/npy" "$work/odd"
        LC_ALL=C sed -i "1s/$1/$2/" "$work/odd/q.npy"
        run ! cmp -s "$work/npy/q.npy" "$work/odd/q.npy"
        refused 2 "$3" "${bench[@]}" --kernel light --load "$work/odd" --quiet
        rm -r "$work/odd"
    }
    loads $'NUMPY\x01' $'NUMPY\x09' "of version 9 of the format"
    loads '(1, 2, 33, 16), }   ' '(1, 2, 33, 16, 1), }' "has shape (1, 2, 33, 16, 1), want (batch, heads, seq, dim)"
    loads '(1, 2, 33, 16), }' '(2, 33, 16), }   ' "has shape (2, 33, 16), want (batch, heads, seq, dim)"
    loads '(1, 2, 33, 16), }' '(1, 2, 66, 8), } ' "beyond what --batch"
    loads '(1, 2, 33, 16), }         ' '(4294967297, 2, 33, 16), }' "has shape (4294967297"
}

@test "a list of runs without an end is refused, and so is a line" {
    local code=0
    yes -- '--kernel light' | timeout 60 ./fa_bench --runs - "${small[@]}" 2>"$work/err" || code=$?
    [ "$code" -eq 2 ]
    grep -q "more than 100000 lines in standard input" "$work/err"
    refused 2 "longer than 65536 bytes" timeout 60 ./fa_bench --runs - </dev/zero
}

@test "a source in UTF-16, with a byte order mark or a zero byte is refused in one line" {
    local plain=examples/plain.cu
    iconv -f UTF-8 -t UTF-16 $plain >"$work/wide.cu"
    { printf '\xef\xbb\xbf'; cat $plain; } >"$work/mark.cu"
    { head -n 2 $plain; printf '\0\n'; tail -n +3 $plain; } >"$work/zero.cu"
    refused 2 "is UTF-16: save it as UTF-8" "${bench[@]}" --source "$work/wide.cu" "${small[@]}"
    refused 2 "starts with a byte order mark" "${bench[@]}" --source "$work/mark.cu" "${small[@]}"
    refused 2 "zero.cu:3: a zero byte in the line" "${bench[@]}" --source "$work/zero.cu" "${small[@]}"
}

@test "limits of the shell that leave too little are said in a line" {
    refused 4 "needs 1048576 bytes of stack" bash -c "ulimit -s 128; exec ./fa_bench --kernel light ${small[*]}"
    refused 4 "needs 64 open files" bash -c "ulimit -n 12; exec ./fa_bench --kernel light ${small[*]}"
    local script
    for script in "ci_gate.sh --dry-run" brief.sh "export.sh --format csv x" "evidence/report.sh --check"; do
        refused 4 "needs 64 open files" bash -c "ulimit -n 12; exec scripts/$script"
    done
    refused 6 "cannot write" bash -c "ulimit -f 1; exec scripts/export.sh --format csv evidence/h200/ladder.jsonl"
    # Nor words of gzip: no file is damaged.
    refused 6 "cannot write" bash -c "(ulimit -f 0; scripts/brief.sh 2>&1) | cat >&2; exit \${PIPESTATUS[0]}"
    [ "$(id -u)" -eq 0 ] && type setpriv || skip "only root can run a process as another user here"
    cp fa_bench "$work/fa_bench"
    chmod 755 "$work" "$work/fa_bench"
    refused 6 "no process can be started" setpriv --reuid=65534 --regid=65534 --clear-groups bash -c \
        "ulimit -u 1; FA_HOME=$PWD XDG_CACHE_HOME=$work/none exec $work/fa_bench --kernel light ${small[*]}"
}

@test "local variables beyond the emulator's stack are named, not another thread's memory" {
    for bytes in '200 << 10' '30 << 20'; do
        sed "s|^    float m = |    volatile char big[$bytes]; big[threadIdx.x * 4096 % ($bytes)] = 1;\n&|" \
            examples/plain.cu >"$work/k.cu"
        refused 4 "stack overflow of a thread: more than 64 KiB" \
            "${bench[@]}" --source "$work/k.cu" "${small[@]}" --quiet
    done
}

# bats test_tags=slow
@test "nor as an input file of a script" {
    mkfifo "$work/pipe"
    while read -r words; do
        for file in "$work/pipe" /dev/zero "$work"; do refused 2 "$file" timeout 20 scripts/$words "$file"; done
    done <<END
ci_gate.sh --dry-run --source
ci_gate.sh --sanitize --resume
ci_gate.sh --library
evidence/bound_evidence.sh
brief.sh --problems
evaluate.sh
evidence/evidence_current.sh
export.sh --format csv
ncu_profile.sh --import
evidence/sweep_scaling.sh --table
evo_sweep.sh --kernel light --sshloginfile
peers.sh --library
evidence/pairs.sh --problems
evidence/pairs.sh
END
}

@test "a pipe with a writer is read" {
    ./fa_bench "${small[@]}" --runs <(echo "--kernel light") --json "$work/r.jsonl" --quiet
    [ "$(jq -r .status "$work/r.jsonl")" = pass ]
}

@test "--json is not the file of --source or --runs" {
    cp examples/plain.cu "$work/k.cu"
    echo "--kernel light" >"$work/runs"
    ln -s k.cu "$work/link.cu"
    refused 2 "--json and --source name one file" "${bench[@]}" --source "$work/k.cu" --json "$work/k.cu"
    refused 2 "--json and --source name one file" "${bench[@]}" --source "$work/k.cu" --json "$work/link.cu"
    refused 2 "--json and --runs name one file" "${bench[@]}" --runs "$work/runs" --json "$work/runs"
    echo "--source $work/k.cu" >"$work/runs"
    refused 2 "--json and --source name one file" "${bench[@]}" --runs "$work/runs" --json "$work/k.cu"
    refused 2 "--json and --vs source: name one file" "${bench[@]}" --kernel light --vs "source:$work/k.cu:m=64" \
        --json "$work/k.cu"
    refused 2 "--cubin and --source name one file" ./fa_bench --compile-only --source "$work/k.cu" --m 64 \
        --cubin "$work/link.cu"
    refused 2 "--json and --cubin name one file" ./fa_bench --compile-only --kernel light --json "$work/new" \
        --cubin "$work/new"
    cmp examples/plain.cu "$work/k.cu"
}

@test "a link that leads nowhere is not written through, a temporary that was planted not followed" {
    echo precious >"$work/precious"
    ln -s "$work/nowhere" "$work/r.json"
    refused 6 "leads nowhere" "${bench[@]}" --kernel light "${small[@]}" --json "$work/r.json"
    [ ! -e "$work/nowhere" ]
    rm "$work/r.json"
    timeout 120 bash -c 'ln -s "$0/precious" "$0/r.json.$$.tmp"
        exec ./fa_bench --kernel light '"${small[*]}"' --quiet --json "$0/r.json"' "$work"
    [ "$(cat "$work/precious")" = precious ]
    record_holds "$work/r.json" '.status == "pass"'
}

runs() { # HIT: it passes, with the module of the cache or with one that it compiles
    ./fa_bench --source examples/plain.cu "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' ".provenance.cache_hit == $1"
}

@test "a cache is its owner's alone; what others can write is not trusted, a folder in place of a file is repaired" {
    export XDG_CACHE_HOME=$work/cache
    runs false
    [ "$(stat -c %a "$work/cache/fa_bench")" = 700 ]
    entry=$(dirname "$(find "$work/cache" -name module.so)")
    runs true
    chmod 777 "$entry"
    runs false
    for mode in 700 777; do
        rm "$entry/log"
        mkdir -p "$entry/log/inner"
        chmod $mode "$entry"
        runs false
        [ -f "$entry/log" ]
    done
    runs true
    [ "$(id -u)" -eq 0 ] || return 0
    chown -R 12345 "$work/cache/fa_bench"
    runs false
}

@test "a file in the place of an entry, or a cache that is removed while a kernel is compiled, is no lasting error" {
    export XDG_CACHE_HOME=$work/cache
    runs false
    entry=$(dirname "$(find "$work/cache" -name module.so)")
    rm -r "$entry"
    echo >"$entry"
    runs false
    runs true
    executable "$work/bin/g++" <<EOT
#!/bin/sh
case " \$* " in *" -shared "*) [ ! -e "$work/once" ] || rm -r "$work/cache" "$work/once" ;; esac
exec $(command -v g++) "\$@"
EOT
    rm -r "$work/cache"
    : >"$work/once"
    PATH="$work/bin:$PATH" runs false
    [ ! -e "$work/once" ]
    sed -i 's/ "[^"]*once" ;;/ ;;/; s/\[ ! -e [^|]*|| //' "$work/bin/g++" # each time
    rm -r "$work/cache"
    refused 6 "the cache was removed while examples/plain.cu was compiled: run again" env PATH="$work/bin:$PATH" \
        ./fa_bench --source examples/plain.cu "${small[@]}" --quiet
}

@test "a cache beyond its limit loses what was unused for longest, nothing that was used within an hour" {
    export XDG_CACHE_HOME=$work/cache
    runs false
    local root=$work/cache/fa_bench name
    for name in $(printf '%064d ' 1 2 3) building.old; do
        mkdir "$root/$name"
        head -c 8388608 /dev/zero >"$root/$name/module.so"
    done
    touch -d '3 days ago' "$root/$(printf '%064d' 1)" "$root/building.old"
    touch -d '2 days ago' "$root/$(printf '%064d' 2)"
    export FA_CACHE_MB=24 # three quarters: the first of the old ones goes
    ./fa_bench --source examples/plain.cu "${small[@]}" --define "X=1" --quiet --no-ptxas
    [ "$(cd "$root" && echo 00000* building.*)" = "$(printf '%064d %064d' 2 3) building.*" ]
    FA_CACHE_MB=0 ./fa_bench --source examples/plain.cu "${small[@]}" --define "X=2" --quiet --no-ptxas
    [ -d "$root/$(printf '%064d' 2)" ]
    FA_CACHE_MB=0.5 ./fa_bench --source examples/plain.cu "${small[@]}" --define "X=3" --quiet --no-ptxas
    [ ! -e "$root/$(printf '%064d' 2)" ]
    [ -d "$root/$(printf '%064d' 3)" ]
    runs true
}

@test "a source that is written while it is compiled is not kept under the name of what it was or becomes" {
    export XDG_CACHE_HOME=$work/cache
    cp examples/plain.cu "$work/k.cu"
    executable "$work/bin/g++" <<EOT
#!/bin/sh
case " \$* " in *" -E "*) ;; *) exec $(command -v g++) "\$@" ;; esac
: >"$work/k.cu" # an editor saves it: for a moment it is empty
$(command -v g++) "\$@"
cp examples/plain.cu "$work/k.cu"
EOT
    refused 6 "was written while it was compiled: run again" env PATH="$work/bin:$PATH" ./fa_bench \
        --source "$work/k.cu" "${small[@]}" --quiet
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' '.provenance.cache_hit | not'
}

no_folder_in_work() { [[ -z $(find "$work/cache" -name 'building.*') ]]; }

@test "a signal while compiling leaves a record, and like a killed parent no compiler and no half-built entry" {
    local signal
    mkdir "$work/cache"
    # A g++ that takes long, and says that it has begun.
    executable "$work/bin/g++" <<EOT
#!/bin/sh
case " \$* " in *" -shared "*) ;; *) exec $(command -v g++) "\$@" ;; esac
echo \$\$ >"$work/compiling"
sleep 1000 &
echo \$! >"$work/sleeping"
wait
EOT
    for signal in HUP INT TERM KILL; do
        rm -f "$work/compiling" "$work/sleeping" "$work/r.json"
        # also where the suites run under nohup
        env --default-signal=HUP PATH="$work/bin:$PATH" XDG_CACHE_HOME="$work/cache" ./fa_bench \
            --source examples/plain.cu "${small[@]}" --quiet --json "$work/r.json" 3>&- &
        bench_pid=$!
        eventually test -s "$work/sleeping"
        kill "-$signal" "$bench_pid"
        kill "-$signal" "$bench_pid" || true # twice, as timeout(1) does
        exits $((128 + $(kill -l "$signal"))) wait "$bench_pid"
        [[ $signal == KILL ]] || record_holds "$work/r.json" '.status == "error"' \
            ".reason | test(\"^ended by signal $(kill -l "$signal") .* while compiling$\")"
        eventually is_gone "$(cat "$work/compiling")"
        eventually is_gone "$(cat "$work/sleeping")"
        eventually no_folder_in_work
    done
}

@test "a limit on the size of files is an error, not a signal" {
    large="./fa_bench --kernel light ${small[*]} --dump '$work/dump' --seq 257 --json '$work/r.json' --quiet"
    run bash -c "ulimit -f 1; trap '' XFSZ; exec $large"
    [ "$status" -le 6 ]
    run -6 bash -c "ulimit -f 1; exec $large"
}

@test "a TMPDIR with spaces and a clone whose path has quotes" {
    mkdir "$work/a b"
    clone="$work/it's \"here\""
    mkdir "$clone"
    cp fa_bench "$clone"
    cp -r kernels include src "$clone"
    cp examples/plain.cu "$clone/a \"k\".cu"
    export XDG_CACHE_HOME="$clone/cache"
    from_there() { # OPTIONS: on the emulator, and by each compiler
        TMPDIR="$work/a b" "$clone/fa_bench" "$@" "${small[@]}" --quiet
        "$clone/fa_bench" "$@" --compile-only --arch sm_89 --quiet
        ! type nvcc || "$clone/fa_bench" "$@" --compile-only --arch sm_89 --compiler nvcc --quiet
    }
    from_there --kernel mma
    from_there --source "$PWD/examples/plain.cu"
    from_there --source "$clone/a \"k\".cu"
    { echo '#include "near.h"'; cat examples/plain.cu; } >"$clone/near.cu"
    echo 'static_assert(FA_M > 0, "near");' >"$clone/near.h"
    (cd "$clone" && FA_HOME=. from_there --kernel light && from_there --source near.cu)
    from_there --source "$PWD/tests/emu/ordinary/wrapped.cu" # of its headers there are copies in the cache
    mkdir "$work/links"
    for each in fa_bench kernels include src; do ln -s "$PWD/$each" "$work/links"; done
    FA_HOME="$work/links" ./fa_bench --source examples/plain.cu --compile-only --arch sm_89 --quiet
    cp examples/plain.cu "$work/k.cu"
    sed -i 's|^    float m = |    ((volatile char *)p.o)[1 << 17] = 1;\n&|' "$work/k.cu"
    TMPDIR="$work/a b" run ./fa_bench --source "$work/k.cu" "${small[@]}" --sanitize address --quiet \
        --json "$work/r.json"
    if ! ldd ./fa_bench | grep -q libasan; then
        [ "$status" -eq 1 ]
        record_holds "$work/r.json" '.reason | test("AddressSanitizer")'
    fi
}

@test "what is no UTF-8 in a path, a log or a header becomes a valid record" {
    odd=$work/$'k\377.cu'
    cp examples/plain.cu "$odd"
    ./fa_bench --source "$odd" "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"'
    iconv -f UTF-8 -t UTF-8 "$work/r.json" >/dev/null
    printf '#error \377\376 not text\n' >>"$odd"
    run -6 ./fa_bench --source "$odd" "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "compile_error"'
    iconv -f UTF-8 -t UTF-8 "$work/r.json" >/dev/null
    ./fa_bench --kernel light "${small[@]}" --quiet --dump "$work/npy"
    LC_ALL=C sed -i $'s/<f2/\377\376\377/' "$work/npy/q.npy"
    run -2 ./fa_bench --kernel light "${small[@]}" --quiet --load "$work/npy" --json "$work/r.json"
    record_holds "$work/r.json" '.status == "usage"'
    iconv -f UTF-8 -t UTF-8 "$work/r.json" >/dev/null
}

@test "the command of a record can be pasted into a shell" {
    odd=$work/$'a b\'c"d\n\377.cu'
    { cat examples/plain.cu; echo "// $RANDOM$RANDOM"; } >"$odd" # so that no compiler's result is in the cache
    ./fa_bench --source "$odd" "${small[@]}" --quiet --json "$work/r.json"
    command=$(jq -r .provenance.command "$work/r.json")
    rm "$work/r.json"
    bash -c "./$command"
    record_holds "$work/r.json" '.status == "pass"'
}

@test "constants of a kernel that are negative or unknown are refused" {
    for constant in '.smem_dynamic_bytes = -4' '.grid = 7' '.blocks_per_sm = -1' '.workspace_bytes_fixed = -8' \
        '.nondeterministic = 3' '.needs = 64'; do
        sed "s|^FA_KERNEL_INFO(.*|FA_KERNEL_INFO(.threads = FA_M, $constant);|" examples/plain.cu >"$work/k.cu"
        grep -qF -- "$constant" "$work/k.cu"
        run -6 ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet --json "$work/r.json"
        record_holds "$work/r.json" '.reason | test("FA_KERNEL_INFO says")'
    done
}

@test "help, lists and the lines of a run that cannot be written are an error" {
    for words in --help --list-kernels --version "--list-kernels --json -"; do
        run -6 bash -c "./fa_bench $words >/dev/full"
        [[ $output == *"standard output"* ]]
    done
    local rows=evidence/h100_80gb_hbm3/paged.jsonl csv=tests/golden/ncu_h200_light.csv words
    for words in "compare.sh $rows $rows" "export.sh --format csv ${csv/.csv/.record.json}" brief.sh \
        "ncu_profile.sh --import $csv" "evo_sweep.sh --kernel light --dry-run"; do
        refused 6 "standard output" bash -c "scripts/$words >/dev/full"
    done
    refused 4 "standard output" bash -c "scripts/ci_gate.sh --kernel light --dry-run >/dev/full"
    run -6 bash -c "./fa_bench --kernel light ${small[*]} >/dev/full"
    [[ $output == *"cannot write to standard output"* ]]
    ./fa_bench --kernel light "${small[@]}" --quiet >/dev/full
}

# Closed files: the next one that is opened would take their number, and text for people end up in it.
@test "with standard files closed, a list of runs has its records and nothing else" {
    printf '%s\n' '--kernel light' '--kernel light --stages 7' >"$work/list"
    for closed in '0<&-:3' '1>&-:6' '2>&-:3' '0<&- 1>&- 2>&-:6'; do
        exits "${closed#*:}" bash -c "./fa_bench ${small[*]} --runs '$work/list' --json '$work/r.jsonl' ${closed%:*}"
        [ "$(jq -r .status "$work/r.jsonl" | paste -sd ' ')" = "pass infeasible" ]
    done
}

@test "a record under the longest name, and a shell without PATH" {
    name=$work/$(printf 'n%.0s' {1..255})
    env -i XDG_CACHE_HOME="$work/cache" ./fa_bench --source examples/plain.cu "${small[@]}" --quiet --json "$name"
    record_holds "$name" '.status == "pass"'
}

@test "a sanitizer that cannot start here is not_run; options from the environment do not switch it off" {
    ! ldd ./fa_bench | grep -q libasan || skip "fa_bench is under AddressSanitizer itself"
    for options in 'no_such=' "x='"; do
        run env ASAN_OPTIONS="$options" ./fa_bench --kernel light "${small[@]}" --sanitize address --quiet \
            --json "$work/r.json"
        [[ $status -eq 4 || $status -eq 0 ]] # an unknown word may be ignored
    done
    run -4 env ASAN_OPTIONS="x='" ./fa_bench --kernel light "${small[@]}" --sanitize address --quiet \
            --json "$work/r.json"
    record_holds "$work/r.json" '.status == "not_run"' '.reason | test("does not start here")'
    sed 's|^    float m = |    ((volatile char *)p.o)[p.o_stride_b * 2] = 1;\n&|' examples/plain.cu >"$work/k.cu"
    asan=exitcode=0:halt_on_error=0:poison_heap=0:redzone=16:suppressions=/dev/null:log_path=/dev/null
    run -1 env ASAN_OPTIONS=$asan ./fa_bench --source "$work/k.cu" "${small[@]}" --sanitize address --quiet
}
