# What the scripts around sweeps print: evo_test_one.sh, sweep_scaling.sh.
include "record";

# A record as one line for people. $knobs: "M=32 W=8 V=4".
def one_line:
    def us: if . == null then "-" else "\(hundredths) us" end;
    "\($knobs)  \(.status | ascii_upcase)  p50 \(.timing.p50_us | us)  p90 \(.timing.p90_us | us)  " +
    "regs \(.ptxas.registers // "-")  smem \(.ptxas.smem_total_bytes // "-")" +
    if .reason then "  \(.reason | split("\n")[0])" else "" end;

# A leaderboard's lines (jq -s) and its sweep as a line of sweep_scaling.sh. `median_s`: the stages of those that ran.
def rate:
    def median: sort | if length == 0 then null else .[length / 2 | floor] end;
    (map(.stage_s // {} | to_entries[]) | group_by(.key) | map({(.[0].key): (map(.value) | median)}) | add) as $stages |
    (map(select(.cache_hit == false).compile_s) | median) as $cold |
    {gpu: $gpu, gpus: $gpus, machine: {gpus: $present, cores: $cores}, cores_each: $each} + $sweep[-1] +
    {median_s: (($stages // {}) + {compile_cold: $cold})};

# Lines of sweep_scaling.sh (jq -s) as a table. A row is compared with the median of one GPU of the same machine and
# commit, over the same space, with as many cores for each GPU.
def rates:
    def like: [.kernel, .group, .space, .machine, .cores_each // 0, .git];
    . as $all |
    "| GPUs | of a machine with | kernel | candidates | seconds | candidates per second | of N times one GPU |",
    "|---|---|---|---|---|---|---|",
    (.[] | like as $like | ([$all[] | select(.gpus == 1 and like == $like).per_second] | sort) as $one |
        "| \(.gpus) | \(.machine.gpus) x \(.gpu), \(.machine.cores) cores" +
        "\(if (.cores_each // 0) > 0 then ", \(.cores_each) for each GPU" else "" end) |" +
        " \(.kernel) | \(.candidates) | \(.seconds) | \(.per_second) |" +
        " \(if $one != [] then .per_second / $one[$one | length / 2 | floor] / .gpus else null end | hundredths) |");
