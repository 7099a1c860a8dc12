# The lines of the fuzzers (with jq -s) as their summary.
{what: "fuzz", executions: (map(.executions) | add), failed: (map(select(.verdict == "FAIL")) | length), targets: .}
