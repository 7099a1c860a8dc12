# The cases as a JUnit file.
def count($verdict): map(select(.verdict == $verdict)) | length;
def clean: gsub("[^\\u0009\\u000a\\u000d\\u0020-\\ud7ff]"; "") | @html;
"<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
"<testsuite name=\"ci_gate\" tests=\"\(length)\" failures=\"\(count("failed"))\" " +
    "skipped=\"\(count("skipped") + count("not_run"))\">",
(.[] | "  <testcase classname=\"\(.kernel | @html)\" name=\"\(.tool | @html) \(.args | @html)\">" +
    (if .verdict == "failed" then "<failure message=\"exit \(.code)\">\(.text | clean)</failure>"
     elif .verdict != "passed" then "<skipped message=\"\(.text | @html)\"/>" else "" end) + "</testcase>"),
"</testsuite>"
