# A folder's facts for the page of all GPUs, from the same variables as report/cards; $folder: its name.
include "report/numbers";
include "report/html";
include "report/rows";
def counted: if . == null then null else (map(.passed) | add) as $p | (map(.failed) | add) as $f |
    {v: $p, t: "\($p) of \($p + $f)"} end;
def best: map(select(.tflops != null and .config != null)) | max_by(.tflops);
{folder: $folder, peak: $peak, best: ($ladder[0] // [] | best),
    climbed: ($ladder[0] // [] | map(select(.tflops != null) | {problem, kernel, tflops})),
    alone: ($peers[0] // [] | map(.ratio | values) | mean),
    paired: ($peers[0] // [] | map(.paired_ratio | values) | mean),
    gate: ($gate[0].kernels | counted), sanitize: ($sanitize[0].kernels | counted),
    bound: $bound[0].percent_of_bound.median, per_second: ($sweeps | map(.per_second | values) | max)}
