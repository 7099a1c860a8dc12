#!/usr/bin/env bash
# Does the tarball of `make portable` run on a bare Debian 12 and a bare Ubuntu 24.04? In chroots made by debootstrap.
#
# usage: tests/portable.sh [options]
#   --on NAME     bookworm (Debian 12) or noble (Ubuntu 24.04); repeatable (default: both)
# In each chroot, beside g++ only: the program starts, says that no g++ is there when its PATH has none (exit 4), and
# with g++ runs a kernel on the emulator. KEYRING_noble and KEYRING_bookworm name the distributions' keyrings (default:
# those of ubuntu-keyring and debian-archive-keyring).
# Exit: 0, 1 it does not run, 2 usage, 4 NOT-RUN: not root, no debootstrap, no mount, no network or no keyring.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
many=([on]='')
parse_options "$@"
mapfile -t names < <(values_of on)
[[ ${#names[@]} -gt 0 ]] || names=(bookworm noble)
for name in "${names[@]}"; do
    [[ $name == bookworm || $name == noble ]] || die 2 "--on takes bookworm or noble, not '$name'"
done
[[ $(id -u) -eq 0 ]] || die 4 "NOT-RUN: not root: debootstrap and chroot need it"
command -v debootstrap >/dev/null || die 4 "NOT-RUN: no debootstrap: apt-get install debootstrap"

work=$(mktemp -d)
mounted=()
clean() {
    local at
    for at in "${mounted[@]}"; do umount "$at"; done
    rm -rf --one-file-system "$work"
}
trap clean EXIT

make_root() { # NAME ROOT
    local mirror=http://deb.debian.org/debian keyring=/usr/share/keyrings/debian-archive-keyring.gpg components=main
    local script=/usr/share/debootstrap/scripts/bookworm
    if [[ $1 == noble ]]; then # its script is that of every Ubuntu since gutsy; an older debootstrap does not know it
        mirror=http://archive.ubuntu.com/ubuntu keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
        script=/usr/share/debootstrap/scripts/gutsy components=main,universe
    fi
    local named=KEYRING_$1
    keyring=${!named:-$keyring}
    [[ -s $keyring ]] || die 4 "NOT-RUN: no keyring $keyring for $1 (set $named)"
    debootstrap --variant=minbase --include=g++ --components="$components" --keyring="$keyring" "$1" "$2" \
        "$mirror" "$script" >"$work/log" 2>&1 || die 4 "NOT-RUN: debootstrap of $1: $(tail -n 1 "$work/log")"
}

inside() { # ROOT CODE COMMAND...: its output goes to $work/said
    local root=$1 code=$2 got=0
    shift 2
    chroot "$root" "$@" >"$work/said" 2>&1 || got=$?
    [[ $got -eq $code ]] || die 1 "$(basename "$root"): exit $got, not $code, of '$*': $(head -n 3 "$work/said")"
}

make --no-print-directory portable >"$work/made"
tarball=$(awk 'END {print $2}' "$work/made")
small=(--device emu --kernel light --batch 1 --heads 2 --seq 33 --dim 16 --seeds 1)
for name in "${names[@]}"; do
    root=$work/$name
    make_root "$name" "$root"
    mount -t proc proc "$root/proc" 2>/dev/null || die 4 "NOT-RUN: cannot mount /proc in a chroot"
    mounted+=("$root/proc")
    mkdir -p "$root/opt/fa"
    tar -C "$root/opt/fa" --strip-components=1 -xzf "$tarball"
    inside "$root" 0 /opt/fa/fa_bench --version
    inside "$root" 0 /opt/fa/fa_bench --list-kernels
    inside "$root" 4 /usr/bin/env PATH=/nowhere HOME=/root /opt/fa/fa_bench "${small[@]}"
    grep -q 'g++' "$work/said" || die 1 "$name: what is missing is not named: $(head -n 3 "$work/said")"
    for race in '' --race; do
        # shellcheck disable=SC2086 # a word or none
        inside "$root" 0 /usr/bin/env HOME=/root /opt/fa/fa_bench "${small[@]}" $race
    done
    grep -q '^check *PASS' "$work/said" || die 1 "$name: no PASS: $(head -n 3 "$work/said")"
    echo "$name: runs"
done
