# A record of a run as a line of FILE.points.jsonl. $points: the options of its run, by its line.
($points | split("\n"))[.provenance.line - 1] as $point |
($point | capture("--kernel (?<kernel>[^ ]+) --dim (?<dim>[0-9]+)")) as $at |
def where: if .backend == "cuda" then .arch else .backend end;
{point: $point, problem: $ENV.problem, kernel: $at.kernel, m: .config.m, dim: ($at.dim | tonumber), arch: $ENV.arch,
    ran: (if .device and .status != "infeasible" then .device | where else null end), status, reason,
    registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes, config,
    code_sha256: .provenance.code_sha256, source_sha256: ($ENV.sources | fromjson)[$at.kernel],
    git: .provenance.git}
