# Rows (with jq -s) as a Markdown table.
def figure: if . == null then "" elif . >= 100 then round else (. * 1000 | round / 1000) end;
def cell: . // "" | tostring | gsub("\\|"; "\\|") | gsub("\n"; " ");
def tile: . // {} | del(.acc, .maxreg) | to_entries | map("\(.key)=\(.value)") | join(",");
def ratio: if .ratio == null then "" else "\(.ratio | figure) over \(.vs)" +
    (if .ratio_ci95 then " (\(.ratio_ci95 | map(figure | tostring) | join(" to ")))" else "" end) end;

["kernel", "tile", "problem", "GPU", "status", "p50 us", "p90 us", "TFLOP/s", "registers", "shared bytes",
 "spilled bytes", "ratio"] as $names |
(($names | "| \(join(" | ")) |", "|\(map("---") | join("|"))|"),
 (.[] | [.kernel, (.knobs | tile), .problem_text, .gpu, .status, (.p50_us | figure), (.p90_us | figure),
    (.tflops | figure), .registers, .smem_bytes, .spill_bytes, ratio] | "| \(map(cell) | join(" | ")) |"))
