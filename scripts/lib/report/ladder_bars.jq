# The bars of $problem: place, TFLOP/s, kernel, p50.
include "report/climbed";
climbed as $order | .[] | select(.problem == $problem and .tflops != null) | .kernel as $k |
[($order | index($k)), .tflops, .kernel, (.p50_us | . * 10 | round / 10)] | @tsv
