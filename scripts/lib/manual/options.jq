# The options (--help --json) as a page, a table per group.
def cell: gsub("\\|"; "\\|");
def usage: "`--\(.name)\(if .value == "" then "" else " " + .value end)`" | cell;
def range: if .min == null or (.value | test("^[0-9]+\\.\\.")) then "" else " From \(.min) to \(.max)." end;
def sentence: (.[:1] | ascii_upcase) + .[1:];
def fallback: if .default then "`\(.default)`" else "-" end;
"# Every option", "",
"Options are long and take a value as `--seq 1024` or `--seq=1024`. `-h` is `--help`. A value is checked whole: its",
"range stands here, and a value outside it is refused with exit code 2.", "",
"This page is made by `scripts/manual.sh` from `src/input/options.def`.",
(reduce .[] as $o ([]; if (.[-1] // [{}])[0].group == $o.group then .[-1] += [$o] else . + [[$o]] end) | .[] |
    "", "## \(.[0].group | sentence)", "", "| option | what it does | default |", "|---|---|---|",
    (.[] | "| \(usage) | \(.help | cell | sentence).\(range) | \(fallback) |")),
"", "## Exit codes", "", "| code | meaning |", "|---|---|", "| 0 | pass |", "| 1 | wrong result |",
"| 2 | usage: the message names the option and its range |",
"| 3 | infeasible configuration: the message says why |", "| 4 | not run: a device, library or tool is missing |",
"| 5 | timeout |", "| 6 | compile, launch or internal error |"
