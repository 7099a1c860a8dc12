# peers.json in a sentence.
include "report/numbers";
map(.ratio | values) | if . == [] then "" else
    "<p>Best peer / ours: geometric mean \(mean | . * 1000 | round / 1000) over \(length) shapes; " +
    "above 1 in \(map(select(. > 1)) | length).</p>" end
