# ladder.json: FLOP per byte and TFLOP/s of $kernel.
.[] | select(.kernel == $kernel and .tflops != null) | [(.problem | split(",") | (.[2] | tonumber) / 2), .tflops] | @tsv
