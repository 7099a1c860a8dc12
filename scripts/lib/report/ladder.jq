# ladder.json as a table of the documents. $folder: where it lies.
include "report/numbers";
map(select(.p50_us != null)) | (map(.problem) | unique_by(work)) as $problems | (map(.kernel) | unique) as $kernels |
. as $all |
"p50 in us, TFLOP/s, and times as fast as the kernel named under \"over\" (by `--vs`), each kernel at its own best",
"tile; full attention, B,H,S,D (-: not measured); records in `\($folder)/ladder/`.", "",
(["kernel", "over"] + $problems | row), "|---|---|\($problems | map("---") | join("|"))|",
([$kernels[] as $k | {k: $k, cells: [$problems[] as $p | [$all[] | select(.kernel == $k and .problem == $p)][0]]}] |
    sort_by(-(.cells | map(.p50_us // 0) | first)) | .[] |
    [(.k | code), (.cells | map(.vs // empty) | names)] + (.cells | map(
        if . then "\(.p50_us | short) (\(.tflops | short))" + if .ratio then ", \(.ratio | short)x" else "" end
        else "-" end)) | row)
