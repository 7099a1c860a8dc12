# The cases as a JUnit file. A case that left no record has no time.
def count($verdict): map(select(.verdict == $verdict)) | length;
def time: if . == null then "" else " time=\"\(. * 1000 | round / 1000)\"" end;
def clean: gsub("[^\\u0009\\u000a\\u000d\\u0020-\\ud7ff]"; "") | @html;
"<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
"<testsuite name=\"ci_gate\" tests=\"\(length)\" failures=\"\(count("failed"))\" errors=\"0\" " +
    "skipped=\"\(count("skipped") + count("not_run"))\"\(map(.seconds // 0) | add // 0 | time)>",
(.[] | "  <testcase classname=\"\(.kernel | @html)\" name=\"\(.tool | @html) \(.args | @html)\"\(.seconds | time)>" +
    (if .verdict == "failed" then "<failure message=\"exit \(.code)\">\(.text | clean)</failure>"
     elif .verdict != "passed" then "<skipped message=\"\(.text | @html)\"/>" else "" end) + "</testcase>"),
"</testsuite>"
