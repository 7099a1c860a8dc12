# A step for people.
"    \(.timing.p50_us * 10 | round / 10) us" +
if .vs then ", \(.vs.ratio * 1000 | round / 1000) over \(.vs.kernel)" else "" end
