# The rows of the page's tables, as arrays; html_row makes one of them HTML.
include "report/numbers";
def html_row: "<tr>" + (map("<td>\(. // "-" | tostring | @html)</td>") | join("")) + "</tr>";
def figure: if . == null then "-" elif . >= 100 then round else hundredths end;
def thousandths: . * 1000 | round / 1000;
def count(f): map(select(f)) | length;

def ladder_rows: sort_by([(.problem | work), -(.p50_us // 0)]) | .[] |
    [.problem, .kernel, (.p50_us | figure), (.p90_us | figure), (.tflops | figure), .vs, (.ratio | figure)];
def best_rows: .[] | [(.p50_us | figure), (.p90_us | figure), .kernel, .knobs, .registers, .smem_bytes];
def peer_rows: .[] | ["\(.batch),\(.heads),\(.seq),\(.dim)", mask, .variant // .kernel, (.us | figure),
    (.tflops | figure), .best_peer, (.peers[.best_peer // ""] | figure), (.ratio | figure)];
def versus_rows: .[] | [.problem, .variant // .kernel, (.p50_us | figure), .vs, (.vs_p50_us | figure),
    (if .ratio then .ratio | figure else .status end),
    (if .ci95 then "\(.ci95[0] | figure) to \(.ci95[1] | figure)" else "" end), (.fa3_scaled | figure),
    (if .fa3_scaled and .p50_us then .fa3_scaled / .p50_us | figure else "" end)];
def parity_rows: group_by(.kernel)[] | [.[0].kernel, count(.verdict == "PASS"), count(.verdict == "FAIL"),
    count(.verdict == "NOT-RUN"), (map(.max_abs_difference_to_torch // 0) | max), (map(.max_abs_err // 0) | max)];
def rate_rows: .[] | [.kernel, (.group | split("|")[2]), .strategy, .candidates,
    (.status | to_entries | map("\(.key) \(.value)") | join(", ")), .measured, .compiled_cold, .seconds, .per_second,
    (.per_second * 60 | round)];
def stage_rows: .[] | [.kernel, (.compile | thousandths),
    (.stages | (.start, .check, .timing, .recheck, .turn) | thousandths)];
