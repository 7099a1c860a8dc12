# The rows for people: a line per shape, the geometric mean and the least.
include "typed";
def n: . * 1000 | round / 1000;
def name: "\(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)\(typed)";
(.[] | [.kernel, (.problem | name), .status, (.new_over_old // 0 | n)] | @tsv),
([.[].new_over_old | numbers] | if . == [] then "no shape was timed"
    else "geometric mean \(map(log) | add / length | exp | n), least \(min | n), \(length) shapes" end)
