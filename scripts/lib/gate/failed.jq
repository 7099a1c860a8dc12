# A case whose problem can be shrunk, as KERNEL|TOOL|OPTIONS.
select(.verdict == "failed" and (.tool | IN("", "race", "address", "undefined")) and (.code | IN(1, 6))) |
"\(.kernel)|\(.tool)|\(.args)"
