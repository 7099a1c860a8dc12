# A row of peers.json. $shape of the grid, $record of our kernel, $peers: records of the peers, $wall: seconds of both,
# $asked: --kernel, $pairs: 0 with --no-pairs.
include "peers/name";
def name_of: peer_names[.kernel] // .kernel;
def by_name(f): map({(name_of): f}) | add // {};
def is_timed: .status == "pass" and .timing.p50_us != null;

([$peers[].paired | select(.status == "wrong")][0]) as $wrong |
($record | if .status == "pass" and $wrong then
        .status = "wrong" | .reason = "paired: \($wrong.reason)" | .timing = null | .throughput = null
    else . end) as $r |
(if $r.status == "pass" then $r.timing.p50_us else null end) as $ours |
([$peers[] | select(is_timed)] | by_name(.timing.p50_us)) as $now |
(if $now.cudnn and $shape.table.fa3 and $shape.table.cudnn
    then {fa3_scaled: ($shape.table.fa3 * $now.cudnn / $shape.table.cudnn)} else {} end) as $scaled |
($now + $scaled) as $us |
($us | if .fa3 then del(.fa3_scaled) else . end | to_entries | min_by(.value)) as $best |
([$peers[] | select(.paired.status == "pass")] |
    by_name(.paired | {ratio, ci95: .ratio_ci95, us: .p50_us, kernel_us: .kernel_p50_us})) as $paired |
($shape | del(.table)) + {kernel: $r.kernel, variant: $r.variant, arch: $r.ptxas.arch, config: $r.config, us: $ours,
    peers: $us, best_peer: $best.key,
    ratio: (if $ours and $best then $best.value / $ours else null end), tflops: $r.throughput.tflops,
    status: $r.status, reason: $r.reason, method: $r.timing.method, sm_clock_mhz: $r.timing.sm_clock_mhz.p50,
    asked: $asked, wall_s: $wall, code_sha256: $r.provenance.code_sha256, source_sha256: $r.provenance.source_sha256,
    git: $r.provenance.git, driver: $r.provenance.driver, time: $r.provenance.time,
    torch: (([$peers[] | select(.kernel == "flash_attn_3")] + $peers)[0].provenance.compiler),
    absent: ([$peers[] | select(.status != "pass")] | by_name(.reason))} +
([$peers[] | select(.library)] | if . == [] then {} else
    {libraries: by_name(.library | {name, version, sha256})} end) +
if $pairs == 0 then {} else {$paired, paired_ratio: (if $ours then [$paired[].ratio] | min else null end),
    unpaired: ([$peers[] | select(.status == "pass" and .paired.status != "pass")] |
        by_name(.paired.reason // "no cubin"))} end
