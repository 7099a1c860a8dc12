# The packages that searches and exports are tested with, in a virtual environment below build/.

# Sets $python, installing what is missing; skips the test, with the reason, where that cannot be done.
needs_packages() {
    local home=${BUILD:-build}/search wanted=tests/search/requirements.txt
    mkdir -p "$home"
    python=$PWD/$home/venv/bin/python
    exec {lock}>"$home/lock"
    flock "$lock"
    if ! cmp -s "$wanted" "$home/installed"; then
        # FlashInfer-Bench alone: its data classes need pydantic, the rest of it PyTorch.
        python3 -m venv "$home/venv" >"$home/log" 2>&1 &&
            timeout 900 "$python" -m pip install -q -r <(grep -v flashinfer "$wanted") >>"$home/log" 2>&1 &&
            timeout 300 "$python" -m pip install -q --no-deps -r <(grep flashinfer "$wanted") >>"$home/log" 2>&1 &&
            cp "$wanted" "$home/installed" ||
            skip "the packages of $wanted cannot be installed: $(tail -n 1 "$home/log")"
    fi
    exec {lock}>&-
}
