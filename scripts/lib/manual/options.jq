# The options (--help --json) as a page, a table per group.
include "manual/facts";
def cell: gsub("\\|"; "\\|");
def usage: "`--\(.name)\(if .value == "" then "" else " " + .value end)`" | cell;
def range: if .min == null or (.value | test("^[0-9]+\\.\\.")) then "" else " From \(.min) to \(.max)." end;
def sentence: (.[:1] | ascii_upcase) + .[1:];
def fallback: if .default then "`\(.default)`" else "-" end;
"# Every option", "",
"Options are long and take a value as `--seq 1024` or `--seq=1024`. `-h` is `--help`. A value is checked whole: its",
"range stands here, and a value outside it is refused with exit code 2.", "",
"This page is made by `scripts/house/manual.sh` from `src/input/options.def`.",
(groups[] |
    "", "## \(.[0].group | sentence)", "", "| option | what it does | default |", "|---|---|---|",
    (.[] | "| \(usage) | \(.help | cell | sentence).\(range) | \(fallback) |")),
"", "## Exit codes", "", "| code | meaning |", "|---|---|", (exit_codes | "| \(.[0]) | \(.[1]) |")
