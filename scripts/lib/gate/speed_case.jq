# A record of --vs as a case: the ratio holds to within 3 % of $least, and the time is not below its static bound (a
# wrong bound or a wrong time). $code: the exit code of the run.
(.bound.percent_of_bound // 0) as $percent |
{kernel: $kernel, tool: "speed", args: $args, code: $code, seconds: (.provenance.stage_s // {} | add),
    text: ("ratio \(.vs.ratio), baseline \($least)" +
        if $percent > 100 then "; the time is below its bound (\($percent) %)" else "" end),
    verdict: (if $code == 0 and (.vs.ratio // 0) >= 0.97 * $least and $percent <= 100 then "passed"
        else "failed" end)}
