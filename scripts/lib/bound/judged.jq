# A measured point with its bound at the clock it was measured with, or at the highest. $compiled: [{options: what
# compiled.jq took}]. current: the machine code that was timed is what compiles today.
$compiled[0][.options] as $c | ($c.bound // {unknown: "it does not compile today"}) as $b |
.current = (.code != null and .code == $c.code) | del(.code) |
if $b.clocks then
    . + {bound_us: ([$b.clocks / (.mhz // $b.clock_mhz_max), $b.dram_us] | max), binds: $b.binds} |
    .percent_of_bound = 100 * .bound_us / .us |
    .blocks_per_sm = $c.blocks_per_sm |
    . + ($b | {clocks, dram_us, clock_mhz_max, sm_count, grid, threads, pipe_clocks, estimate_terms_us})
else .unknown = $b.unknown end
