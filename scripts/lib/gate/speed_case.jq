# A record of --vs as a case: the ratio holds to within 3 % of $least. $code: the exit code of the run.
{kernel: $kernel, tool: "speed", args: $args, code: $code, text: "ratio \(.vs.ratio), baseline \($least)",
    verdict: (if $code == 0 and (.vs.ratio // 0) >= 0.97 * $least then "passed" else "failed" end)}
