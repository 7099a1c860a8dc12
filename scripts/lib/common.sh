# shellcheck shell=bash disable=SC2034,SC2154 # the caller has the tables and $registry
# What every script shares: options, errors, jq programs, small files. Sourced.
export LC_ALL=C # a number has a decimal point, whatever the user's locale
script=${0##*/}
lib=${BASH_SOURCE[0]%/*} # scripts/lib
bench=${FA_BENCH:-./fa_bench}

die() { # CODE TEXT
    echo "$script: $2" >&2
    exit "$1"
}

# For scripts with fa_bench's exit codes: a command that fails unforeseen ends them with 6 (error), since 1 would say
# that the kernel is wrong. The code of "die" in a subshell stays.
fail_with_error() {
    set -E
    trap '((BASH_SUBSHELL)) || end_unforeseen $?' ERR
}
end_unforeseen() { # CODE
    exit $(($1 == 1 || $1 > 6 ? 6 : $1))
}

# Something to read to its end: a file, or a pipe that the shell made; no folder, no device, no pipe without a writer.
is_input() { [[ (-f $1 || $1 == /dev/fd/* || $1 == /dev/stdin) && -r $1 ]]; }

# A jq program of scripts/lib: the function NAME of the module TOOL.jq.
jqf() { # TOOL/NAME OPTIONS-AND-FILES...
    jq -L "$lib" "import \"${1%/*}\" as m; m::${1#*/}" "${@:2}"
}

# The options of a script are tables, which it fills before it calls parse_options:
#   opt[NAME]=DEFAULT    --NAME VALUE, the last one counts
#   flag[NAME]=0         --NAME makes it 1
#   many[NAME]=''        --NAME VALUE, repeatable: a line per value; --kernel takes NAME[,NAME...]
# $arguments says what happens to anything else: "none" refuses it, "words" collects what is no option in the array
# `words`, "all" collects the options of fa_bench there too. These two also take "--": the options of fa_bench
# that follow are in the array `more`.
declare -A opt flag many
words=() more=() arguments=none
parse_options() {
    local name value
    while [[ $# -gt 0 ]]; do
        name=none
        [[ ! $1 =~ ^--[a-z][a-z0-9-]*$ ]] || name=${1#--}
        if [[ $name == help || $1 == -h ]]; then
            usage
            exit 0
        elif [[ -v flag[$name] ]]; then
            flag[$name]=1
        elif [[ -v opt[$name] || -v many[$name] ]]; then
            [[ $# -ge 2 ]] || die 2 "$1 needs a value"
            value=$2
            [[ $name != kernel || -v opt[kernel] ]] || value=${value//,/$'\n'}
            if [[ -v opt[$name] ]]; then opt[$name]=$value; else many[$name]+=$value$'\n'; fi
            shift
        elif [[ $1 == -- && $arguments != none ]]; then
            for name in "${@:2}"; do # --seq=64 as --seq 64
                if [[ $name =~ ^(--[a-z0-9-]+)=(.*)$ ]]; then more+=("${BASH_REMATCH[@]:1}"); else more+=("$name"); fi
            done
            break
        elif [[ $arguments != none && $1 != -* ]] || { [[ $arguments == all ]] && is_of_bench "$1"; }; then
            words+=("$1")
        else
            die 2 "unknown option $1 (see --help)"
        fi
        shift
    done
}
is_of_bench() { # --NAME[=VALUE]
    grep -qF "(\"$(sed -E 's/^--|=.*//g' <<<"$1")\"," "$lib/../../src/input/options.def"
}
values_of() { # NAME: the values of a repeatable option, a line each
    printf '%s' "${many[$1]}"
}
# What a script decides itself is not among the options that it passes on to fa_bench.
refuse_own() { # "NAME NAME..." OPTIONS...
    local word
    for word in "${@:2}"; do
        [[ $word != --* ]] || word=${word%%=*}
        [[ " $1 help version list-kernels runs stream json cubin " != *" ${word#--} "* || $word != --* ]] ||
            die 2 "$word is this script's own (see --help)"
    done
}
need_number() { # LEAST NAME...: these options hold whole numbers from LEAST
    local name
    for name in "${@:2}"; do
        [[ ${opt[$name]} =~ ^[0-9]{1,9}$ && $((10#${opt[$name]})) -ge $1 ]] ||
            die 2 "--$name takes a whole number from $1, not '${opt[$name]}'"
    done
}

need_jq() { command -v jq >/dev/null || die 4 "NOT-RUN: no jq: run scripts/setup.sh"; }
need_bench() {
    [[ -x $bench ]] || die 4 "NOT-RUN: no $bench: run make"
    need_jq
}
use_peers() { # DIR: peers that scripts/evidence/peers_env.sh brought; nothing for an empty name
    [[ -n $1 ]] || return 0
    [[ -d $1/python || -d $1/cudnn ]] || die 2 "--env takes a folder of scripts/evidence/peers_env.sh, not '$1'"
    local dir
    dir=$(cd "$1" && pwd)
    export PEERS_SITE=$dir/python # lib/peers/peers_torch.py
    export LD_LIBRARY_PATH=$dir/cudnn:${LD_LIBRARY_PATH:-} FA_LIBRARY_PATH=$dir/cudnn:${FA_LIBRARY_PATH:-}
}
make_work() { # a folder that goes when the script ends
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
}
replace_file() { # FILE: standard input becomes the file, whole or not at all, whoever else writes it at the same time
    local path new
    if [[ $1 == /dev/* || (-e $1 && ! -f $1) ]]; then # written in place: replaced, it would be gone for all programs
        cat >"$1"
        return $?
    fi
    path=$(realpath -m -- "$1") # a link stays a link
    new=$path.$BASHPID.tmp
    mkdir -p "$(dirname "$path")" && cat >"$new" && mv -- "$new" "$path" && return 0 # in a trap, too
    rm -f -- "$new"
    return 6
}

# The objects of files with JSON, lists or JSON Lines, a line each. A line that a kill has cut off is none.
json_objects() { # FILE...: needs make_work
    local file each='if type == "array" then .[] else . end | objects'
    jq -c "$each" "$@" >"$work/objects" 2>/dev/null || for file in "$@"; do
        jq -c "$each" "$file" >"$work/object" 2>/dev/null || jq -Rc 'fromjson? | objects' "$file" >"$work/object"
        cat "$work/object"
    done >"$work/objects"
    cat "$work/objects"
}

knob_options() { # "m=64,n=128" as options
    sed -E 's/(^|,)([a-z]+)=/ --\2 /g' <<<"$1"
}
# A kernel is a name of the registry or source:FILE.cu, as --vs takes both: "$(kernel_flag "$k")" "${k#source:}"
kernel_flag() { # KERNEL: the option that takes it
    [[ $1 == source:* ]] && echo --source || echo --kernel
}
kernel_exists() { # NAME [KIND]: in $registry; KIND: hand, ours, or library
    jq -e --arg name "$1" --arg kind "${2:-}" 'any(.[]; .name == $name and ($kind == "" or .kind == $kind))' \
        <<<"$registry" >/dev/null
}
need_kernels() { # LIST: names of $registry, separated by commas or in lines, become the array `names`
    local name
    mapfile -t names < <(tr -s , '\n' <<<"$1" | sed '/^$/d')
    for name in "${names[@]}"; do
        kernel_exists "$name" || die 2 "no kernel '$name' (fa_bench --list-kernels)"
    done
}
rungs() { # the hand-written kernels of $registry, a line each, the lowest rung first
    jq -r '.[] | select(.kind == "hand" and .variant_of == null).name' <<<"$registry"
}
kinds() { # {NAME: "hand" or "library"} of every row
    "$bench" --list-kernels --json - | jq -c 'map({(.name): .kind}) | add'
}
