# True of a record of --compile-only --bound that cannot, or hardly can ($by: bound or estimate), be faster than $best
# (us, in an array). $gpu: its multiprocessors and highest clock. The bound is of a part of the architecture that has at
# least as many multiprocessors, or nothing is known.
.bound | .clocks and $gpu.sm_count <= .sm_count and
    (if $by == "bound" then .clocks else .estimate_us_low * .clock_mhz_max end) / $gpu.clock_mhz_max > $best[0]
