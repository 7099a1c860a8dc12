# The bars of $problem: place, TFLOP/s, kernel, p50, and TFLOP/s at the ends of p50's interval. $records: of records.jq.
include "report/climbed";
climbed as $order | .[] | select(.problem == $problem and .tflops != null) | .kernel as $k |
($records[0]["\(.problem)|\(.kernel)"].ci95 // [.p50_us, .p50_us]) as $ci |
[($order | index($k)), .tflops, .kernel, (.p50_us | . * 10 | round / 10), (.tflops * .p50_us / ($ci[1], $ci[0]))] | @tsv
