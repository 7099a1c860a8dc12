#!/usr/bin/env bats
# The commands of README.md and docs/ run as they are printed, and print what the page shows (tests/run_docs.py).
load helper

@test "every environment variable that the program reads is on its page" {
    local name
    for name in $(grep -ohE 'getenv\("[A-Z_]+"\)' -r src | sed 's/.*"\(.*\)".*/\1/' | sort -u); do
        grep -q "^| .*\`$name\`" docs/environment.md || { echo "$name"; return 1; }
    done
}

page() { # [--slow] PAGE...
    local slow=() name code not_run=0
    [[ $1 != --slow ]] || { slow=(--slow); shift; }
    for name in "$@"; do
        code=0
        mkdir -p "$work/${name//\//-}"
        tests/run_docs.py "${slow[@]}" "$name" "$work/${name//\//-}" || code=$?
        case $code in
            0) ;;
            4) not_run=1 ;;
            *) return 1 ;;
        esac
    done
    [[ $not_run -eq 0 ]] || skip "something that a command needs is missing here"
}

@test "README.md" { page README.md; }

@test "every option is in a command of a page that runs in the tests, but --library, which needs nvcc" {
    local option
    awk '/^```/ {on = $0 == "```sh" || $0 == "```sh slow"} on' README.md docs/*.md >"$work/commands"
    for option in $(./fa_bench --help | sed -nE 's/^ +(--[a-z0-9-]+).*/\1/p' | grep -vx -e --library); do
        grep -qE -e "$option( |=|\$)" "$work/commands" || { echo "$option is in no command"; return 1; }
    done
}

@test "a command that fails, an output that differs and a kind that is none are said" {
    printf 'Text\n\n```sh\necho one two\n```\n\n```text\none ...\n```\n' >"$work/good.md"
    tests/run_docs.py "$work/good.md" "$work"
    sed 's/one \.\.\./two .../' "$work/good.md" >"$work/other.md"
    run -1 tests/run_docs.py "$work/other.md" "$work"
    [[ $output == *"other.md:3: exit 0"* && $output == *"the page shows:"* ]]
    sed 's/echo one two/false/' "$work/good.md" >"$work/fails.md"
    run -1 tests/run_docs.py "$work/fails.md" "$work"
    sed 's/echo one two/exit 4/' "$work/good.md" >"$work/missing.md"
    run -4 tests/run_docs.py "$work/missing.md" "$work"
    sed 's/```sh/```sh soon/' "$work/good.md" >"$work/kind.md"
    run -1 tests/run_docs.py "$work/kind.md" "$work"
    [[ $output == *"no kind of block 'soon'"* ]]
}

@test "a test that the map of tests/README.md does not have is seen" {
    mkdir "$work/tree"
    cp -r --parents scripts/house/test_map.py tests/README.md tests/unit tests/fuzz "$work/tree"
    ln -s "$PWD/src" "$work/tree/src"
    "$work/tree/scripts/house/test_map.py" --check
    printf '%s\n' 'int main(void) { return fa_shell_word(0); }' >"$work/tree/tests/unit/test_words.c"
    run -1 "$work/tree/scripts/house/test_map.py" --check
    [[ $output == *"| \`src/base\` | text | test_text, test_words |"* ]]
}

# bats file_tags=slow
@test "the tutorial: wrong, raced, fixed, compiled" {
    page docs/tutorial.md
}

@test "the other pages" {
    mapfile -t pages < <(ls docs/*.md | grep -v tutorial)
    [ "${#pages[@]}" -ge 12 ]
    page "${pages[@]}"
}

@test "what takes long" { page --slow README.md docs/*.md; }

@test "an edit of an option, a file, a link, a picture or a table is seen" {
    mkdir -p "$work/tree"
    cp -r README.md AGENTS.md CHANGELOG.md docs scripts tests evidence "$work/tree/"
    for name in fa_bench src kernels include examples studies; do ln -s "$PWD/$name" "$work/tree/$name"; done
    check() { "$work/tree/tests/check_docs.sh"; }
    check
    printf '%s\n' 'use --no-such-thing' 'see scripts/none.sh' '[here](none.md)' \
        '[there](timing.md#none)' >>"$work/tree/docs/sweeps.md"
    sed -i 's/`try_sample` in/`try_none` in/' "$work/tree/docs/architecture.md"
    sed -i '0,/<\/text>/s//\/text>/' "$work/tree/docs/rooms.svg"
    run -1 check
    [[ $output == *"docs/rooms.svg: mismatched tag: line "* ]]
    [[ $output == *"no option --no-such-thing"* && $output == *"no file scripts/none.sh"* ]]
    [[ $output == *"docs/sweeps.md: no none.md"* && $output == *"docs/sweeps.md: no timing.md#none"* ]]
    [[ $output == *"docs/architecture.md: no try_none in "* ]]
    cp docs/sweeps.md docs/architecture.md docs/rooms.svg "$work/tree/docs/"
    sed -i 's/^| `scalar` |/| `scalars` |/' "$work/tree/docs/kernels.md"
    run -1 check
    [[ $output == *"docs/kernels.md: tables are not current"* ]]
}
