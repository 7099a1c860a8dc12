# The options (--help --json) as bash completion. Names of kernels are asked of the program itself.
def words: "\(.name | @sh)) COMPREPLY=($(compgen -W \(.value | gsub("\\|"; " ") | @sh) -- \"$word\")) ;;";
"# bash completion for fa_bench; made by scripts/house/manual.sh --completion",
"_fa_bench() {",
"    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
"    COMPREPLY=()",
"    case ${before#--} in",
(.[] | select(.value | test("^[a-z0-9-]+(\\|[a-z0-9-]+)+$")) | "        \(words)"),
"        'kernel' | 'vs')",
"            COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" --list-kernels 2>/dev/null |",
"                sed -n 's/^\\([a-z][a-z0-9_]*\\) .*/\\1/p')\" -- \"$word\")) ;;",
"        \(map(select(.value | test("^(FILE|DIR)")) | .name | @sh) | join(" | ")))",
"            COMPREPLY=($(compgen -f -- \"$word\")) ;;",
"        *) COMPREPLY=($(compgen -W '\(map("--" + .name) | join(" "))' -- \"$word\")) ;;",
"    esac",
"}",
"complete -o filenames -F _fa_bench fa_bench"
