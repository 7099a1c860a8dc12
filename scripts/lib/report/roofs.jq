# Of records: the roofs of the fastest device, {peak, gbytes}; nothing without one.
map(select(.throughput.peak_boost_tflops != null) |
    {peak: .throughput.peak_boost_tflops, gbytes: .device.memory_gbytes_per_s}) | max_by(.peak) // empty
