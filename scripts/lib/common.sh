# shellcheck shell=bash disable=SC2034,SC2154 # the caller has the tables and $registry
# What every script shares: options, errors, jq programs, small files. Sourced.
export LC_ALL=C # a number has a decimal point, whatever the user's locale
script=${0##*/}
lib=${BASH_SOURCE[0]%/*} # scripts/lib
bench=${FA_BENCH:-./fa_bench}
. "$lib/gpu.sh"

trap '' XFSZ # a limit on the size of files is a write that fails, not a signal

die() { # CODE TEXT
    echo "$script: $2" >&2 || true # a standard error that cannot be written is no other code
    exit "$1"
}

# --help prints the comment at a script's head. A script that has changed its folder was started in $OLDPWD.
usage() {
    local file=$0
    [[ -e $file ]] || file=$OLDPWD/$0
    sed -n '2,/^[^#]/{/^# shellcheck/d; s/^# \{0,1\}//p}' "$file"
}

# For scripts with fa_bench's exit codes: a command that fails unforeseen ends them with 6 (error), since 1 would say
# that the kernel is wrong. The code of "die" in a subshell stays.
fail_with_error() {
    unreadable=6
    set -E
    trap '((BASH_SUBSHELL)) || end_unforeseen $?' ERR
}
end_unforeseen() { # CODE
    exit $(($1 == 1 || $1 > 6 ? 6 : $1))
}

{ (exec 63</dev/null); } 2>/dev/null || die 4 "NOT-RUN: needs 64 open files (ulimit -n 64)"

# Something to read to its end: a file, or a pipe that the shell made; no folder, no device, no pipe without a writer.
is_input() { [[ (-f $1 || $1 == /dev/fd/* || $1 == /dev/stdin) && -r $1 ]]; }
need_inputs() { # FILE...
    local file
    for file; do is_input "$file" || die 2 "cannot read '$file'"; done
}

# A jq program of scripts/lib: the function NAME of the module TOOL.jq. What it cannot read is said in one line.
jqf() { # TOOL/NAME OPTIONS-AND-FILES...
    local code=0 said
    {
        said=$(jq -L "$lib" "import \"${1%/*}\" as m; m::${1#*/}" "${@:2}" 2>&1 >&3 3>&-) || code=$?
    } 3>&1
    [[ -n $said ]] || return "$code"
    if [[ $code -gt 1 && $said != *"compile error"* ]]; then
        said="$script: $1: $(sed -E '1!d; s/^(jq: )?(parse )?error( \([^)]*\))?: //' <<<"$said")"
        code=${unreadable:-2}
    fi
    echo "$said" >&2
    return "$code"
}

# The options of a script are tables, which it fills before it calls parse_options:
#   opt[NAME]=DEFAULT    --NAME VALUE, the last one counts
#   flag[NAME]=0         --NAME makes it 1
#   many[NAME]=''        --NAME VALUE, repeatable: a line per value; --kernel takes NAME[,NAME...]
# $arguments says what happens to anything else: "none" and "bench" refuse it, "words" collects what is no option in the
# array `words`, "all" collects the options of fa_bench there too. All but "none" also take "--": the options of
# fa_bench that follow are in the array `more`.
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
            [[ -n ${2-} ]] || die 2 "$1 needs a value"
            value=$2
            [[ $name != kernel || -v opt[kernel] ]] || value=${value//,/$'\n'}
            if [[ -v opt[$name] ]]; then opt[$name]=$value; else many[$name]+=$value$'\n'; fi
            shift
        elif [[ $1 == -- && $arguments != none ]]; then
            for name in "${@:2}"; do # --seq=64 as --seq 64
                if [[ $name =~ ^(--[a-z0-9-]+)=(.*)$ ]]; then more+=("${BASH_REMATCH[@]:1}"); else more+=("$name"); fi
            done
            break
        elif [[ $arguments =~ ^(words|all)$ && $1 != -* ]] || { [[ $arguments == all ]] && is_of_bench "$1"; }; then
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
from_caller() { # PATH: below the folder in which a script was started that has changed it
    if [[ -z $1 || $1 == /* || $OLDPWD -ef . ]]; then echo "$1"; else echo "$OLDPWD/$1"; fi
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

need_jq() { command -v jq >/dev/null || die 4 "NOT-RUN: no jq: run scripts/setup.sh (fa_bench --doctor: every tool)"; }
need_python() { command -v python3 >/dev/null || die 4 "NOT-RUN: no python3: run scripts/setup.sh"; }
need_bench() {
    [[ -x $bench ]] || die 4 "NOT-RUN: no $bench: run make"
    need_jq
}
use_peers() { # DIR: peers that scripts/evidence/peers_env.sh brought; nothing for an empty name
    [[ -n $1 ]] || return 0
    [[ -d $1/python || -d $1/cudnn ]] || die 2 "--env takes a folder of scripts/evidence/peers_env.sh, not '$1'"
    local dir
    dir=$(cd "$1" && pwd)
    export PEERS_SITE=$dir/python PATH=$dir/python/bin:$PATH # lib/peers/peers_rows.py; FlashInfer's ninja
    export LD_LIBRARY_PATH=$dir/cudnn:${LD_LIBRARY_PATH:-} FA_LIBRARY_PATH=$dir/cudnn:${FA_LIBRARY_PATH:-}
    # PyTorch's RPATH wins over LD_LIBRARY_PATH, and its cuDNN would load the rest from there: preloaded, it is one.
    [[ ! -d $dir/cudnn ]] ||
        with_peers=(env "LD_PRELOAD=$(find "$dir/cudnn" -name '*.so*' | sort | paste -sd:)${LD_PRELOAD:+:$LD_PRELOAD}")
}
problems_of() { # FILE...: their lines of problem options; {A|B} is a problem each
    local file
    need_python
    for file; do python3 "$lib/peers/peers_rows.py" --problems="$file"; done
}
with_peers=() # what a process with PyTorch is started with, after use_peers
# On a terminal, one line that the next one replaces: what a script that says nothing for a while is at.
progress() { # TEXT, or nothing: takes it away
    [[ ! -t 2 ]] || printf '\r\033[K%s' "${1:+$script: $1 }" >&2
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

# The reader of all scripts: the values of a file with JSON, lists or JSON Lines, plain or .gz, a line each. A damaged
# file ends the script with 2 and one line, which names the file and its line or record; then nothing is printed.
read_json() { # KIND FILE: a kind of kinds.jq; needs make_work
    local at said
    is_input "$2" || die 2 "no file '$2'"
    at=$(mktemp "$work/read.XXXXXX")
    command -v gzip >/dev/null || die 4 "NOT-RUN: no gzip"
    if ! gzip -cdf <"$2" >"$at" 2>"$at.said"; then
        said=$(sed -E '/./!d; s/^gzip: //' "$at.said" | head -n 1)
        [[ -n $said && $said != stdout:* ]] || die 6 "cannot write to $work${said:+: ${said#*: }}" # nor what it says
        die 2 "$2: damaged .gz: ${said#stdin: }"
    fi
    grep -qa '[^[:space:]]' "$at" || die 2 "$2 is empty"
    if ! jq -L "$lib" -nc "import \"kinds\" as m; m::read(\"$1\")" "$at" >"$at.read" 2>"$at.said"; then
        said=$(head -n 1 "$at.said")
        [[ $said != record\ * ]] || die 2 "$2: $said"
        [[ $said != *"writing output failed"* ]] || die 6 "cannot write to $work: ${said##*: }"
        die 2 "$2:$(broken_line "$at" "$said")"
    fi
    cat "$at.read" || die 6 "cannot write what $2 holds"
    rm -f "$at" "$at.read" "$at.said"
}
broken_line() { # FILE WORDS-OF-JQ: "LINE: what is wrong"
    local said=$2 line each
    # shellcheck disable=SC2016 # jq's
    each='first(foreach inputs as $text (0; . + 1; . as $line | $text | select(test("[^ \t\r]")) |
        try (fromjson | empty) catch "\($line) \(.)"))'
    if [[ $(head -n 1 "$1" | tr -d '\0' | jq -c type 2>/dev/null) =~ ^\"(object|array)\"$ ]]; then # of JSON Lines
        said=$(jq -Rnr "$each" "$1" 2>/dev/null)
        line=${said%% *}
    elif [[ $said =~ at\ line\ ([0-9]+),\ column\ ([0-9]+) ]]; then
        line=$((BASH_REMATCH[1] - (BASH_REMATCH[1] > 1 && BASH_REMATCH[2] == 0)))
    fi
    if [[ $said == *Unfinished* ]]; then said="cut off"; else said="not JSON"; fi
    echo "${line:-1}: $said"
}
# A file that a script goes on with: a last line that a kill cut short is taken off. Other damage ends it: read_json.
go_on_with() { # KIND FILE
    local said
    [[ -s $2 ]] || return 0
    if [[ -n $(tail -c 1 "$2" | tr -d '\0') ]]; then sed '$d' "$2"; else cat "$2"; fi >"$work/whole"
    if [[ -s $work/whole ]] && ! said=$(read_json "$1" "$work/whole" 2>&1 >/dev/null); then
        said=${said#"$script: "}
        die 2 "${said/"$work/whole"/"$2"}"
    fi
    cmp -s "$work/whole" "$2" || replace_file "$2" <"$work/whole"
}
put_out() { # FILE: standard input becomes the file, whole, or with '' goes to standard output
    if [[ -n $1 ]]; then replace_file "$1"; else cat; fi 2>/dev/null || die 6 "cannot write ${1:-to standard output}"
}
# Is a file that a script can do without there, plain or as .gz? Prints its path.
either() { # FILE
    local file
    for file in "$1" "$1.gz"; do
        [[ ! -e $file ]] || { echo "$file"; return 0; }
    done
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
need_kernels() { # LIST: makes $registry; names of it, separated by commas or in lines, become the array `names`
    local name
    registry=$("$bench" --list-kernels --json -)
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
