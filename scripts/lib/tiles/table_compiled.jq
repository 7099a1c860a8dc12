# All lines as a table: a line per kernel and architecture.
def count(f): map(select(f)) | length;
group_by([.kernel, .arch])[] |
"\(.[0].kernel) \(.[0].arch): \(count(.status == "pass")) compile, \(count(.status == "infeasible")) infeasible, " +
"\(count(.status != "pass" and .status != "infeasible")) failed, " +
"\(count(.status == "pass" and .spill_bytes > 0)) spill, \(count(.warnings | length > 0)) warn"
