# The summary: a card per finding. Each variable is a list with one file's contents, or empty: $ladder, $records,
# $peers, $gate, $sanitize, $parity, $bound, $sweeps; $peak: the tensor peak in TFLOP/s or null.
include "report/numbers";
include "report/html";
include "report/rows";
def card($id; $number; $says): "<a class=\"card\" href=\"#\($id)\"><b>\($number | @html)</b>\($says | @html)</a>";
def total(f): map(f // 0) | add // 0;
def passed: total(.passed) as $p | "\($p) of \($p + total(.failed))";

"<div class=\"cards\">",
($ladder[0] // [] | map(select(.tflops != null and .config != null)) | max_by(.tflops) | select(.) |
    card("ladder"; "\(.tflops | rounded) TFLOP/s";
        "the fastest kernel, \(.kernel), on \(.problem)" +
            if $peak then ": \(100 * .tflops / $peak | round) % of the tensor cores' peak" else "" end)),
($peers[0] // [] | map(.ratio | values) | select(. != []) |
    card("peers"; "\(mean | fixed(2))x"; "as fast as the best library, the geometric mean of \(length) shapes; " +
        "ahead on \(count(. > 1)), least \(min | fixed(2))x (each timed alone)")),
($peers[0] // [] | map(.paired_ratio | values) | select(. != []) |
    card("peers"; "\(mean | fixed(2))x"; "the same in pairs, taking turns in one process: ahead on " +
        "\(count(. > 1)) of \(length), least \(min | fixed(2))x")),
($gate[0].kernels // [] | select(. != []) | card("correct"; passed;
    "cases right: the problem matrix against attention in FP64; " +
        "\(total(.skipped)) skipped, which a kernel does not offer")),
($sanitize[0].kernels // [] | select(. != []) |
    card("correct"; passed; "runs clean under compute-sanitizer's four tools")),
($parity[0] // [] | select(. != []) | count(.verdict == "PASS") as $p | count(.verdict == "FAIL") as $f |
    card("parity"; "\($p) of \($p + $f)"; "results agree with PyTorch's on the same inputs")),
($bound[0] // empty | card("bounds"; "\(.percent_of_bound.median | round) %";
    "of the machine code's bound at the median of \(.points) runs; " +
        "\(.below_bound | length) ran faster than the bound allows")),
($sweeps | map(.per_second | values) | select(. != []) |
    card("sweep"; "\(max | rounded) a second"; "candidates compiled, checked and timed, in the fastest sweep")),
"</div>"
