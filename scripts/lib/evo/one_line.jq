# A record as one line for people. $knobs: "M=32 W=8 V=4".
def us: if . == null then "-" else "\(. * 100 | round / 100) us" end;
"\($knobs)  \(.status | ascii_upcase)  p50 \(.timing.p50_us | us)  p90 \(.timing.p90_us | us)  " +
"regs \(.ptxas.registers // "-")  smem \(.ptxas.smem_total_bytes // "-")" +
if .reason then "  \(.reason | split("\n")[0])" else "" end
