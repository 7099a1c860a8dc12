# shellcheck shell=bash disable=SC2154 # common.sh has $bench
# Which GPU a script runs on, and the folder of its evidence. Sourced by common.sh.

# The folder of evidence/ for a GPU: its whole name without the maker ("NVIDIA L4" -> l4), so an H200 NVL is no H200.
gpu_folder() { # NAME
    sed -E 's/^NVIDIA //; s/[^A-Za-z0-9]+/_/g; s/^_|_$//g' <<<"$1" | tr '[:upper:]' '[:lower:]'
}

# The record of a small run on the GPU; a record that says not_run, or nothing, where there is none.
gpu_probe() { # BENCH OPTIONS...
    "$1" --device cuda --batch 1 --heads 1 --seq 16 --dim 64 --seeds 1 --check cpu --timing none --quiet --json - \
        "${@:2}" 2>/dev/null || true
}

# The name of the GPU that the bench finds; nothing where there is none.
gpu_name() { # BENCH
    local kernel
    kernel=$("$1" --list-kernels --json - | jq -r '[.[] | select(.kind == "hand")][0].name')
    gpu_probe "$1" --kernel "$kernel" |
        jq -r 'select(.status != "not_run") | .device.name // empty' 2>/dev/null || true
}

# What is compiled for an architecture: from sm_90 on its own features, too.
gpu_target() { # sm_90: sm_90a
    [[ $1 =~ ^sm_(9|1[0-9])[0-9]$ ]] && echo "$1a" || echo "$1"
}

# Evidence is of a commit: what is written below evidence/ is made by kernels, a driver and scripts as HEAD has them.
# Where there is no history, the build says whether it is of a commit.
need_clean() { # PATH
    local changed git kernel
    [[ $(realpath -m -- "$1")/ == "$(realpath .)/evidence/"* ]] || return 0
    changed=$(git status --porcelain -- kernels include src scripts Makefile 2>/dev/null | head -n 1 | cut -c4- || true)
    [[ -z $changed ]] || die 2 "$changed differs from HEAD: commit it first, or take another --out"
    kernel=$("$bench" --list-kernels --json - | jq -r '.[0].name')
    git=$(gpu_probe "$bench" --kernel "$kernel" | jq -r '.provenance.git // ""')
    [[ $git != *-dirty ]] || die 2 "$bench was built from a changed tree ($git): run make, or take another --out"
}
