#!/usr/bin/env bats
# What is installed or packed runs away from this tree; the man page and the completion know every option.
load helper

@test "installed: runs a kernel from any folder, has its pages, and leaves nothing behind" {
    make install DESTDIR="$work/root" PREFIX=/opt/fa >"$work/said"
    local at=$work/root/opt/fa
    (cd "$work" && env -u FA_HOME "$at/bin/fa_bench" --kernel light "${small[@]}" --json "$work/r.json")
    record_holds "$work/r.json" '.status == "pass"' '.device.backend == "emu"'
    [ -s "$at/share/fa_bench/examples/plain.cu" ]
    sed -n 3p "$at/share/doc/fa_bench/docs/options.md" | grep -q '^Installed without `scripts/`'
    grep -q '^\.TH FA_BENCH 1' "$at/share/man/man1/fa_bench.1"
    bash -n "$at/share/bash-completion/completions/fa_bench"
    make uninstall DESTDIR="$work/root" PREFIX=/opt/fa >"$work/said"
    [ -z "$(find "$work/root" -type f)" ]
}

@test "every option is in the man page, in the completion and on the page of options; -h is --help" {
    ./fa_bench --help --json "$work/options.json"
    scripts/house/manual.sh --man >"$work/man"
    scripts/house/manual.sh --completion >"$work/completion"
    jq -e 'length > 40' "$work/options.json"
    while read -r name; do
        grep -qF -- "\\-\\-${name//-/\\-}\\fR" "$work/man"
        grep -qF -- "--$name" "$work/completion"
        grep -qF -- "| \`--$name" docs/options.md
    done < <(jq -r '.[].name' "$work/options.json")
    diff <(./fa_bench -h) <(./fa_bench --help)
}

@test "completion offers options, words, kernels" {
    scripts/house/manual.sh --completion >"$work/completion"
    . "$work/completion"
    offer() { # WORDS...
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _fa_bench
        echo "${COMPREPLY[*]}"
    }
    [ "$(offer ./fa_bench --sched)" = --schedule ]
    [ "$(offer ./fa_bench --device e)" = emu ]
    [ "$(offer ./fa_bench --kernel wmma_)" = wmma_qk ]
    [ "$(offer ./fa_bench --kernel '' | tr ' ' '\n' | sort)" = "$(./fa_bench --list-kernels --json - |
        jq -r '.[].name' | sort)" ]
}

@test "the version stands in one place" {
    version=$(sed -n 's/^#define FA_VERSION "\(.*\)"/\1/p' src/base/version.h)
    [ "$(./fa_bench --version | head -n 1)" = "fa_bench $version" ]
    grep -qF "## $version" CHANGELOG.md
}

@test "a page that is not current, and a field without a description, are said" {
    mkdir "$work/tree"
    cp -r --parents scripts docs src/base/version.h src/input/presets.def tests/schemas "$work/tree"
    export FA_BENCH=$PWD/fa_bench
    "$work/tree/scripts/house/manual.sh" --check
    sed -i 's/Batches/Bunches/' "$work/tree/docs/options.md"
    run -1 "$work/tree/scripts/house/manual.sh" --check
    [[ $output == *"docs/options.md is not current"* ]]
    schema=tests/schemas/fa_bench.result.schema.json
    jq '.properties.timing.properties.gait = {type: "number"}' "$schema" >"$work/tree/$schema"
    run "$work/tree/scripts/house/manual.sh"
    [ "$status" -ne 0 ]
    [[ $output == *"no description of timing.gait"* ]]
}

# bats file_tags=slow
@test "packed: the tarball runs a kernel where it is unpacked" {
    make --no-print-directory portable >"$work/said"
    tarball=$(awk 'END {print $2}' "$work/said")
    [[ $tarball == build/fa_bench-*-portable.tar.gz ]]
    tar -C "$work" -xzf "$tarball"
    (cd / && env -u FA_HOME "$work"/fa_bench-*-portable/fa_bench --kernel light "${small[@]}")
}

@test "packed: runs on a bare Debian 12 and Ubuntu 24.04" {
    for name in bookworm noble; do
        code=0
        tests/portable.sh --on "$name" >"$work/$name" 2>&1 || code=$?
        cat "$work/$name"
        [ "$code" -eq 0 ] || [ "$code" -eq 4 ]
    done
    grep -h NOT-RUN "$work/bookworm" "$work/noble" >"$work/why" || return 0
    skip "$(tail -n 1 "$work/why")"
}
