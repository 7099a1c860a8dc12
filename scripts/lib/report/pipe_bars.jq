# The points of the ladder on $problem, a line per kernel: its name, the measured time, then the percent of that
# time that the code keeps each pipe busy at least, by tensor, mufu, fma, alu, shared, issue and l2.
include "report/numbers";
map(select((.file | startswith("ladder/")) and .problem == $problem and .pipe_clocks)) | sort_by(-.us) | .[] |
(.us * (.mhz // .clock_mhz_max) / 100) as $percent |
[(.kernel | gsub("_"; "\\_")), "\(.us | if . >= 100 then round else . * 10 | round / 10 end) us",
    (.pipe_clocks | (.tensor, .mufu, .fma, .alu, .shared, .issue, .l2) / $percent)] | @tsv
