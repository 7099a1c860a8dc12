# shellcheck shell=bash
# The hosts of --sshloginfile, asked before a sweep begins. Sourced by evo_sweep.sh.

# A line is "HOST", "CORES/HOST", a whole ssh command, or ":" for this machine.
check_hosts() { # FILE
    local line words name
    while IFS= read -r line <&3; do
        read -ra words <<<"${line%%#*}"
        [[ ${#words[@]} -gt 0 ]] || continue
        words[0]=${words[0]#*/}
        [[ ${words[0]} != : ]] || continue
        for name in ssh rsync; do
            command -v "$name" >/dev/null || die 4 "no $name: --sshloginfile needs it here and on the hosts"
        done
        name=${words[-1]}
        [[ ${#words[@]} -gt 1 ]] || words=(ssh -o BatchMode=yes -o ConnectTimeout=10 "$name")
        "${words[@]}" true </dev/null >/dev/null 2>&1 || die 4 "host $name does not answer: ${words[*]} true"
        "${words[@]}" command -v rsync </dev/null >/dev/null 2>&1 || die 4 "host $name has no rsync"
        "${words[@]}" "test -x '$PWD/scripts/evo_sweep.sh'" </dev/null >/dev/null 2>&1 ||
            die 4 "host $name has no $PWD/scripts/evo_sweep.sh"
    done 3<"$1"
}
