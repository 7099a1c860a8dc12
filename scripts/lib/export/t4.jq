# Rows (with jq -s) in the T4 schema of autotuning results. What was not run, or compiled alone, is no result.
{pass: "correct", wrong: "correctness", infeasible: "constraints", compile_error: "compile", timeout: "timeout",
 error: "runtime"} as $invalidity |
def measurement($name; $value; $unit): if $value == null then empty else {name: $name, value: $value, unit: $unit} end;
def ms: if . == null then null else . / 1000 end;
{schema_version: "1.0.0", metadata: {timeunit: "milliseconds"},
 results: map(select($invalidity[.status] and (.status != "pass" or .gpu)) | {
    timestamp: (.time // ""), configuration: (.knobs // {}),
    times: {compilation_time: (.times_ms.compile // 0), benchmark: (.times_ms.benchmark // 0), framework: 0,
        search_algorithm: 0, validation: (.times_ms.validation // 0),
        runtimes: (if .p50_us then [.p50_us | ms] else [] end)},
    invalidity: $invalidity[.status], correctness: (if .status == "pass" then 1 else 0 end),
    measurements: [measurement("time"; .p50_us | ms; "ms"), measurement("time_p90"; .p90_us | ms; "ms"),
        measurement("throughput"; .tflops; "TFLOP/s"), measurement("registers"; .registers; ""),
        measurement("shared_memory"; .smem_bytes; "bytes"), measurement("spilled"; .spill_bytes; "bytes"),
        measurement("reason"; .reason; "")],
    objectives: ["time"]})}
