# The rows for people: a line per shape, the geometric mean and the least.
include "numbers";
include "typed";
def name: "\(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)\(typed)";
(.[] | [.kernel, (.problem | name), .status, (.new_over_old // 0 | thousandths)] | @tsv),
([.[].new_over_old | numbers] | if . == [] then "no shape was timed"
    else "geometric mean \(mean | thousandths), least \(min | thousandths), \(length) shapes" end)
