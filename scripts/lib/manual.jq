# The generated parts of the manual: pages, the man page, the bash completion.
# Input of completion, man and options: the options (--help --json); of record: the schema of a record.

def exit_codes: ["0", "pass"], ["1", "wrong result"], ["2", "usage: the message names the option and its range"],
    ["3", "infeasible configuration: the message says why"], ["4", "not run: a device, library or tool is missing"],
    ["5", "timeout"], ["6", "compile, launch or internal error"];
def option_groups:
    reduce .[] as $o ([]; if (.[-1] // [{}])[0].group == $o.group then .[-1] += [$o] else . + [[$o]] end);
def sentence: (.[:1] | ascii_upcase) + .[1:];
def code: "`\(.)`";

# Names of kernels are asked of the program itself.
def completion:
    def words: "\(.name | @sh)) COMPREPLY=($(compgen -W \(.value | gsub("\\|"; " ") | @sh) -- \"$word\")) ;;";
    "# bash completion for fa_bench; made by scripts/house/manual.sh --completion",
    "_fa_bench() {",
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
    "    COMPREPLY=()",
    "    case ${before#--} in",
    (.[] | select(.value | test("^[a-z0-9-]+(\\|[a-z0-9-]+)+$")) | "        \(words)"),
    "        'kernel' | 'vs')",
    "            COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" --list-kernels 2>/dev/null |",
    "                sed -n '/^$/q; s/^\\([a-z][a-z0-9_]*\\) .*/\\1/p')\" -- \"$word\")) ;;",
    "        'preset') COMPREPLY=($(compgen -W '\($presets | map(.[0]) | join(" "))' -- \"$word\")) ;;",
    "        \(map(select(.value | test("^(FILE|DIR)")) | .name | @sh) | join(" | ")))",
    "            COMPREPLY=($(compgen -f -- \"$word\")) ;;",
    "        *) COMPREPLY=($(compgen -W '\(map("--" + .name) | join(" "))' -- \"$word\")) ;;",
    "    esac",
    "}",
    "complete -o filenames -F _fa_bench fa_bench";

# $version: of the program.
def man:
    def roff: gsub("\\\\"; "\\e") | gsub("-"; "\\-") | sub("^(?<c>[.'])"; "\\&\(.c)");
    def bold: "\\fB\(roff)\\fR";
    ".TH FA_BENCH 1 \"\" \"fa_bench \($version)\" \"User Commands\"",
    ".SH NAME", "fa_bench \\- benchmark for attention\\-forward kernels in CUDA C",
    ".SH SYNOPSIS", ".B fa_bench", "[\\fIoptions\\fR]",
    ".SH DESCRIPTION",
    "Compiles an attention\\-forward kernel, proves it right, times it, and writes a JSON record.",
    "Without a GPU the kernel runs on a CPU emulator, which finds wrong results and data races and gives no times.",
    ".SH OPTIONS",
    (option_groups[] |
        ".SS \(.[0].group | roff)",
        (.[] | ".TP", "\("--" + .name | bold)\(if .value == "" then "" else " \\fI\(.value | roff)\\fR" end)",
            "\(.help | roff)\(if .default then " (\(.default | roff))" else "" end)")),
    ".SH EXIT STATUS",
    (exit_codes | ".TP", .[0], .[1]),
    ".SH ENVIRONMENT",
    ".TP", ".B FA_HOME", "the folder that holds kernels, include and src, instead of the one beside the program",
    ".TP", ".B XDG_CACHE_HOME", "where compiled kernels are kept, under fa_bench (~/.cache)",
    ".TP", ".B FA_CACHE_MB", "their limit in MiB (2048; 0: none): those unused for longest go",
    ".TP", ".B FA_LIBRARY_PATH", "further folders with cuBLAS and cuDNN, separated by colons",
    ".TP", ".B CUTLASS_DIR", "CUTLASS with its include, for the kernels that need it",
    ".SH EXAMPLES",
    ".nf", "fa_bench \\-\\-kernel light \\-\\-compile\\-only \\-\\-arch sm_89",
    "fa_bench \\-\\-source mine.cu \\-\\-device emu \\-\\-race",
    "fa_bench \\-\\-kernel mma \\-\\-vs wmma \\-\\-json record.json", ".fi";

def options:
    def cell: gsub("\\|"; "\\|");
    def usage: "--\(.name)\(if .value == "" then "" else " " + .value end)" | code | cell;
    def fallback: if .default then .default | code else "-" end;
    def range: if .min == null or (.value | test("^[0-9]+\\.\\.")) then "" else " From \(.min) to \(.max)." end;
    "# Every option", "",
    "Options are long and take a value as `--seq 1024` or `--seq=1024`. `-h` is `--help`.",
    "A value outside the range given here is refused with exit code 2. Numbers and words, `--kernel` and `--preset`",
    "take several values, such as `64,128` or `512:8192:x2`: [each is a run](sweeps.md#several-values).", "",
    "This page is made by `scripts/house/manual.sh` from `src/input/options.def`.",
    (option_groups[] |
        "", "## \(.[0].group | sentence)", "", "| option | what it does | default |", "|---|---|---|",
        (.[] | "| \(usage) | \(.help | cell | sentence).\(range) | \(fallback) |")),
    "", "## Exit codes", "", "| code | meaning |", "|---|---|", (exit_codes | "| \(.[0]) | \(.[1]) |");

# $presets: those of presets.def, [name, what, source, options] each.
def presets:
    "# Problems of published models", "",
    "`--preset NAME` stands for the options of a row; an option given beside it wins. Heads, dimensions, windows and",
    "scales are those of the model's `config.json` (the source); batches and lengths are examples of ours: a prompt",
    "(prefill), or one new token for each request over a paged cache (decode). A model whose layers differ has several",
    "rows. A window of W keys is `W-1,0`. Without `--kernel` the first default that serves it runs.", "",
    "```sh",
    "./fa_bench --kernel light --preset gpt-oss --device emu --heads 8 --kv-heads 1 --seq 160 --seeds 1 --check cpu",
    "./fa_bench --preset llama-3-8b-prefill,llama-3-8b-decode --select --arch sm_90a", "```", "",
    "This page is made by `scripts/house/manual.sh` from `src/input/presets.def`.", "",
    "| preset | what it is | options | source |", "|---|---|---|---|",
    ($presets[] | "| \(.[0] | code) | \(.[1]) | \(.[3] | code) | [config](https://\(.[2])) |");

# The fields of an object of the schema: {name, type, text}. A definition's fields are listed under the top-level key
# that refers to it, not where a deeper field does.
def fields($definitions; $at):
    def resolved: if has("$ref") then $definitions[."$ref" | ltrimstr("#/$defs/")] + . else . end;
    def words: map(if . == null then "null" else tojson end) | join(", ");
    def type_of: if has("const") then [.const] | words elif has("enum") then .enum | words
        else [.type] | flatten | join(" or ") end;
    (.properties // {}) | to_entries[] | "\($at)\(.key)" as $name | .value |
    {name: $name, type: (resolved | type_of),
        text: (.description // error("no description of \($name) in the schema"))},
    (select($at == "" or (has("$ref") | not)) | resolved |
        fields($definitions; "\($name)."), (.items // empty | fields($definitions; "\($name)[].")));

def record:
    def row: "| \(.name | code) | \(.type) | \(.text) |";
    def table: "", "| field | type | what it is |", "|---|---|---|", (.[] | row);
    . as $schema | [.properties | keys_unsorted[] as $key |
        [{properties: {($key): .[$key]}} | fields($schema."$defs"; "")]] |
    "# The record, field by field", "",
    "`--json FILE` writes one JSON object per run. `--json -` prints it alone on stdout.",
    "Its JSON Schema is `tests/schemas/fa_bench.result.schema.json`. Keys may be added, never renamed.",
    "Times are in microseconds where the name ends in `_us`. A field without a value is `null`.", "",
    "This page is made by `scripts/house/manual.sh` from the schema.",
    "", "## The run", (map(select(length == 1)[]) | table),
    (.[] | select(length > 1) | "", "## \(.[0].name)", "", "\(.[0].text | sentence).", (.[1:] | table));
