#!/usr/bin/env bash
#SBATCH --job-name=fa_sweep
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00
#SBATCH --output=fa_sweep-%A_%a.log
# One task of an array per kernel, or per seed when one kernel is named; all share one leaderboard under its locks.
#
# usage: sbatch --array=0-N scripts/evo_slurm.sh [--dry-run] [evo_sweep.sh options] [-- fa_bench options]
# Without --kernel task k of the array sweeps the k-th hand kernel of the registry (a task beyond the last does
# nothing). With --kernel each task sweeps that kernel with its own number as --seed. Needs a file system with locks
# that all nodes share; submit from the repository. FA_BENCH names the binary (default: the repository's).
# Exit codes are evo_sweep.sh's; 4 outside Slurm.
set -euo pipefail
export LC_ALL=C

usage() { sed -n '/^# usage:/,/^[^#]/s/^# \{0,1\}//p' "$0"; }
die() { # CODE TEXT; Slurm runs a copy of this file from elsewhere, so scripts/lib is not beside it
    echo "evo_slurm.sh: $2" >&2
    exit "$1"
}

dry_run=0
arguments=() named=0
while [[ $# -gt 0 ]]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --dry-run) dry_run=1 ;;
        --seed) die 2 "--seed is the task's number" ;;
        --) arguments+=("$@"); break ;;
        --kernel) named=1; arguments+=("$1") ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
sweep=$(dirname "${BASH_SOURCE[0]}")/evo_sweep.sh
if [[ -n ${SLURM_SUBMIT_DIR:-} ]]; then
    cd "$SLURM_SUBMIT_DIR"
    sweep=scripts/evo_sweep.sh
fi
[[ -x $sweep ]] || die 4 "NOT-RUN: no $sweep: submit from the repository, not from $PWD"
code=0 # 2: a typo
text=$("$sweep" --dry-run "${arguments[@]}" 2>&1 >/dev/null) || code=$?
[[ $code -ne 2 ]] || { echo "$text" >&2; exit 2; }
task=${SLURM_ARRAY_TASK_ID:-}
[[ $task =~ ^[0-9]+$ ]] || die 4 "NOT-RUN: no array task: submit with sbatch --array=0-N (see --help)"

command=("$sweep" --seed "$task")
if [[ $named -eq 0 ]]; then
    bench=${FA_BENCH:-${sweep%/*}/../fa_bench}
    [[ -x $bench ]] || die 4 "NOT-RUN: no $bench: run make"
    command -v jq >/dev/null || die 4 "NOT-RUN: no jq: run scripts/setup.sh"
    kernel=$("$bench" --list-kernels --json - |
        jq -r --argjson k "$task" '[.[] | select(.kind == "hand") | .name][$k] // empty')
    [[ -n $kernel ]] || { echo "no kernel number $task: nothing to do"; exit 0; }
    command=("$sweep" --kernel "$kernel")
fi
command+=("${arguments[@]}")
echo "${command[*]}"
[[ $dry_run -eq 1 ]] || exec "${command[@]}"
