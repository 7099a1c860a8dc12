# A measured point with its bound at the clock it was measured with, or at the highest. $compiled: [{options: what
# compiled.jq took}]. $folders: lines of a commit and, after a tab, a folder with its kernels. code_of: the commit of
# which the kernel has the machine code that was timed, or "today"; null: the bound is of other machine code.
($folders | split("\n") | map(select(. != "") / "\t" | {(.[0]): .[1]}) | add // {}) as $folder_of |
$folder_of[.measured_at] as $folder |
(if $folder then .options_was = (.options | sub("^--kernel (?<k>\\S+)"; "--source \($folder)/kernels/\(.k).cu"))
    else . end) |
$compiled[0][.options_was // ""] as $was | $compiled[0][.options] as $today |
.code_of = (if .code == null then null elif .code == $was.code then .measured_at elif .code == $today.code then "today"
    else null end) |
(if .code_of == .measured_at then $was else $today end // {}) as $c |
($c.bound // {unknown: "it does not compile today"}) as $b | del(.code, .measured_at) |
if $b.clocks then
    . + {bound_us: ([$b.clocks / (.mhz // $b.clock_mhz_max), $b.dram_us] | max), binds: $b.binds} |
    .percent_of_bound = 100 * .bound_us / .us |
    .blocks_per_sm = $c.blocks_per_sm |
    . + ($b | {clocks, dram_us, clock_mhz_max, sm_count, grid, threads, pipe_clocks, estimate_terms_us})
else .unknown = $b.unknown end
