# A library's record as the server of the peers gives its own. Input: the library alone; $pair: the kernel --vs it, or
# null; $name of the library, $pairs: 0 with --no-pairs. Only our own kernel's wrong result makes a pair "wrong".
{kernel: $name, status, reason, timing, library, provenance: {compiler: .provenance.compiler}} +
if $pairs == 0 or .status != "pass" then {}
elif $pair == null then {paired: {status: "not_run", reason: "no kernel to pair with"}}
else {paired: ($pair | {
    status: (if .check.passed == false then "wrong" elif .status == "pass" and .vs.ratio then "pass" else "error" end),
    reason, kernel_p50_us: .vs.p50_us, p50_us: .vs.other_p50_us, ratio: .vs.ratio, ratio_ci95: .vs.ratio_ci95,
    blocks: .vs.blocks})} end
