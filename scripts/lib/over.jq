# New machine code over old: the rows of scripts/evidence/new_over_old.sh.
include "record";

# True when every shape was timed, none is below 0.98 times as fast, and the geometric mean is 0.995 or more.
def as_fast: map(.new_over_old) | all(.[]; type == "number") and min >= 0.98 and mean >= 0.995;

# The records of old --vs new as rows (with jq -s): how many times as fast the new one is.
def rows:
    def one_over: numbers | 1 / .;
    map({kernel: .vs.kernel, variant: .kernel, arch: .ptxas.arch, problem, config: .vs.config, status, reason,
        code_sha256: .vs.code_sha256, old_code_sha256: .provenance.code_sha256,
        new_over_old: ((.vs.ratio | one_over) // null),
        ci95: ([.vs.ratio_ci95[1, 0]? | one_over] | if length == 2 then . else null end),
        aa_noise: .vs.aa_noise, p50_us: .vs.p50_us, git: .provenance.git, time: .provenance.time,
        gpu: .device.name, driver: .provenance.driver});

# The rows as text: a line per shape, the geometric mean and the least.
def text:
    def name: "\(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)\(typed)";
    (.[] | [.kernel, (.problem | name), .status, (.new_over_old // 0 | thousandths)] | @tsv),
    ([.[].new_over_old | numbers] | if . == [] then "no shape was timed"
        else "geometric mean \(mean | thousandths), least \(min | thousandths), \(length) shapes" end);

# A record as the name of the kernel's file and the options of its tile, by a tab.
def tile:
    [.variant // .kernel, (.config | to_entries | map("--\(.key) \(.value)") | join(" "))] | @tsv;
