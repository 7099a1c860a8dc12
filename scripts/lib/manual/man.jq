# The options (--help --json) as a man page. $version.
include "manual/facts";
def roff: gsub("\\\\"; "\\e") | gsub("-"; "\\-") | sub("^(?<c>[.'])"; "\\&\(.c)");
def bold: "\\fB\(roff)\\fR";
".TH FA_BENCH 1 \"\" \"fa_bench \($version)\" \"User Commands\"",
".SH NAME", "fa_bench \\- benchmark for attention\\-forward kernels in CUDA C",
".SH SYNOPSIS", ".B fa_bench", "[\\fIoptions\\fR]",
".SH DESCRIPTION",
"Compiles an attention\\-forward kernel, proves it right, times it, and writes a JSON record.",
"Without a GPU the kernel runs on a CPU emulator, which finds wrong results and data races and gives no times.",
".SH OPTIONS",
(groups[] |
    ".SS \(.[0].group | roff)",
    (.[] | ".TP", "\("--" + .name | bold)\(if .value == "" then "" else " \\fI\(.value | roff)\\fR" end)",
        "\(.help | roff)\(if .default then " (\(.default | roff))" else "" end)")),
".SH EXIT STATUS",
(exit_codes | ".TP", .[0], .[1]),
".SH ENVIRONMENT",
".TP", ".B FA_HOME", "the folder that holds kernels, include and src, instead of the one beside the program",
".TP", ".B XDG_CACHE_HOME", "where compiled kernels are kept, under fa_bench (~/.cache)",
".SH EXAMPLES",
".nf", "fa_bench \\-\\-kernel light \\-\\-compile\\-only \\-\\-arch sm_89",
"fa_bench \\-\\-source mine.cu \\-\\-device emu \\-\\-race",
"fa_bench \\-\\-kernel mma \\-\\-vs wmma \\-\\-json record.json", ".fi"
