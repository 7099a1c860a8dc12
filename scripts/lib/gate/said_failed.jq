# A case that failed, for people.
def last_line: .text | split("\n") | map(select(length > 0)) | last // "";
select(.verdict == "failed") | "FAIL \(.kernel) \(.tool) \(.args)  (exit \(.code))\n     \(last_line)"
