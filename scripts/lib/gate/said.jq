# The summary for people.
.kernels[] | "\(.kernel): \(.passed) passed, \(.failed) failed, \(.skipped) skipped" +
if .not_run > 0 then ", \(.not_run) NOT-RUN (the time limit)" else "" end
