# Records of the ladder: {"PROBLEM|KERNEL": {file, ci95}}. $dir: the folder that the files are named from.
include "typed";
[inputs | select(.problem.batch) | {
    key: ((.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)" + if .causal then " causal" else "" end + typed) +
        "|\(.kernel)"),
    value: {file: (input_filename | ltrimstr($dir + "/")),
        ci95: (.timing.p50_ci95_us | if .[0] == null then null else . end)}}] | from_entries
