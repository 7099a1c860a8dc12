# Rows (with jq -s) of one kernel and one group as a cache file of Kernel Tuner; times in milliseconds. What was not run
# is not in it; without a result there is no file.
{wrong: "RuntimeFailedConfig", infeasible: "InvalidConfig", compile_error: "CompilationFailedConfig",
 timeout: "RuntimeFailedConfig", error: "RuntimeFailedConfig"} as $errors |
map(select(.knobs and (.p50_us or $errors[.status]))) | select(. != []) | . as $rows |
(map(.knobs | keys_unsorted) | add // [] | reduce .[] as $k ([]; if index([$k]) then . else . + [$k] end)) as $names |
def values($name): $rows | map(.knobs[$name]) | unique;
def ms: if . then . / 1000 else null end;
{device_name: .[0].gpu, kernel_name: .[0].kernel,
 problem_size: (.[0].problem | [.seq_q // 1, .heads // 1, .batch // 1]),
 tune_params_keys: $names, tune_params: ($names | map({(.): values(.)}) | add), objective: "time",
 cache: (map(. as $row | {
    key: ($names | map($row.knobs[.] | tostring) | join(",")),
    value: (.knobs + {time: (.p50_us | ms // $errors[$row.status]), times: [.p50_us | ms | select(.)],
        compile_time: (.times_ms.compile // 0), verification_time: (.times_ms.validation // 0),
        benchmark_time: (.times_ms.benchmark // 0), strategy_time: 0, framework_time: 0, timestamp: (.time // ""),
        registers, smem_bytes} | with_entries(select(.value != null)))}) | from_entries)} |
# Kernel Tuner looks at the last three characters to tell whether the file was closed.
tojson | .[:-2] + "}\n}"
