# Of the cases of an earlier run: what need not run again on $gpu, as "KERNEL|TOOL|ARGS CODE", a tab, the case.
select((.verdict == "passed" or .verdict == "skipped") and .gpu == $gpu and .code_sha256 != null) |
"\(.kernel)|\(.tool)|\(.args) \(.code_sha256)\t\(tojson | gsub("\t"; " "))"
