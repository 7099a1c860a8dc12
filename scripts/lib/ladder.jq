# Records of the ladder, as scripts/evidence/ladder.sh makes them.
include "evidence";
include "record";

# The records of the ladder (with -s) as rows. tile: the configuration is the kernel's own, not a variant's.
def table:
    map({problem: (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)\(typed)"), kernel, variant,
        arch: (.ptxas.arch // (.device.arch | target)), config, tile: (.variant == .kernel and .config != null),
        p50_us: .timing.p50_us, p50_ci95: .timing.p50_ci95_us, p90_us: .timing.p90_us, tflops: .throughput.tflops,
        version: (.library | if . then "\(.name) \(.version)" else null end),
        vs: .vs.kernel, ratio: .vs.ratio, ci95: .vs.ratio_ci95, method: .timing.method,
        sm_clock_mhz: .timing.sm_clock_mhz.p50, vs_config: .vs.config, vs_code_sha256: .vs.code_sha256,
        code_sha256: .provenance.code_sha256, git: .provenance.git});

# A step for people.
def text:
    "    \(.timing.p50_us * 10 | round / 10) us" +
    if .vs then ", \(.vs.ratio * 1000 | round / 1000) over \(.vs.kernel)" else "" end;

# The problem of a line of fa_bench options as "B,H,S,D".
def named:
    def value($name; $default): ($options | capture("--\($name) +(?<v>[0-9]+)").v) // $default;
    [value("batch"; "2"), value("heads"; "8"), value("seq"; "512"), value("dim"; "64")] | join(",");

# A record, but for one of $kernel on $problem (B,H,S,D).
def others:
    select(.kernel != $kernel or (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)") != $problem);

# leaderboard.json: the tile that leads the sweeps of $kernel on $problem (B,H,S,D, full attention, FP32 accumulators).
def tile:
    ($problem | split(",") | "|\(.[0]),\(.[1]),\(.[1]),\(.[2]),\(.[2]),\(.[3]),full|fp32") as $group |
    [.[] | select(.group | endswith($group))][0].kernels[$kernel].knobs // empty;

# Rows of the ladder as the ratios that the gate asks for, on the canonical problem.
# $rungs: names, lowest first.
def gate_baseline:
    def tile($between; knob): if .tile then .config | to_entries | map(knob) | join($between) else "" end;
    $rungs[0] as $base | map(select(.problem == "2,8,512,64")) as $rows |
    ([$rows[] | select(.kernel == $base)][0]) as $low |
    ($low | tile(","; "\(.key)=\(.value)") | if . == "" then $base else "\($base):\(.)" end) as $vs |
    reduce $rungs[1:][] as $kernel ({over: {($base): 1}, rows: []};
        ([$rows[] | select(.kernel == $kernel and .ratio != null)][0]) as $row |
        if $row and .over[$row.vs] then
            .over[$kernel] = .over[$row.vs] * $row.ratio |
            .rows += [{kernel: $kernel, vs: $vs, args: ("--timing graph" + ($row | tile(""; " --\(.key) \(.value)"))),
                ratio: .over[$kernel], problem: $row.problem, variant: $row.variant, arch: $row.arch,
                config: $row.config, code_sha256: $row.code_sha256, vs_config: $low.config,
                vs_code_sha256: $low.code_sha256, git: $row.git}]
        else . end) |
    .rows;
