#!/usr/bin/env bash
# Records and leaderboards in the formats of other tools.
#
# usage: scripts/export.sh --format FORMAT [options] [FILE or FOLDER...]
#   --format csv                  a line per record
#   --format markdown             a table
#   --format t4                   results in the T4 schema of autotuners (Kernel Tuner, BAT)
#   --format kernel-tuner-cache   a cache file, which Kernel Tuner's simulation mode replays without a GPU
#   --format flashinfer           a FlashInfer Trace folder (--out FOLDER) of records: definitions, workloads,
#                                 solutions (kernels without tensor maps and CUTLASS) and traces; records of
#                                 --definition and --workload have these (read where the record's command names them)
#                                 and no solution
#   --format kernelbench          files of KernelBench (--out FOLDER): each problem in PyTorch, and the fastest tile of
#                                 each kernel without tensor maps and CUTLASS as a PyTorch extension; FP16 alone
#   --format robust-kbench        task folders of robust-kbench (--out FOLDER), likewise
#   --format rbk-report           rbk_report.json and rbk_report.md (--out FOLDER) of records and rows of peers.sh:
#                                 SDPA, the ladder, the best tile, criteria of success
#   --kernel NAME[,NAME...]       these alone; repeatable
#   --group TEXT                  of a leaderboard: groups that contain TEXT alone, e.g. "2,8,8,512,512,64,full"
#   --status STATUS               these alone, e.g. pass
#   --out FILE                    write to FILE, not to stdout
# A FILE has records of fa_bench (--json) or lines of a leaderboard, as JSON, a list or JSON Lines, plain or .gz. A
# FOLDER is a sweep's: its leaderboard.jsonl. Of results with the same key the last counts. A cache file takes one
# kernel and one group; a point of the space without a result is InvalidConfig there, marked unrecorded (--strategy grid
# leaves none).
# Exit: 0, 2 usage or nothing to export, 4 not run (no jq), 6 a file cannot be written.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
opt=([format]='' [group]='' [status]='' [out]='')
many=([kernel]='')
arguments=words
parse_options "$@"
folders=(flashinfer kernelbench robust-kbench rbk-report) # formats of several files
formats=(csv markdown t4 kernel-tuner-cache "${folders[@]}")
[[ " ${formats[*]} " == *" ${opt[format]:-none} "* ]] || die 2 "--format takes ${formats[*]}, not '${opt[format]}'"
many_files=0
[[ " ${folders[*]} " != *" ${opt[format]} "* ]] || many_files=1
[[ $many_files -eq 0 || -n ${opt[out]} ]] || die 2 "--format ${opt[format]} needs --out FOLDER"
need_jq
[[ ${#words[@]} -gt 0 ]] || die 2 "takes a FILE or FOLDER with records (see --help)"

make_work
for file in "${words[@]}"; do
    [[ ! -d $file ]] || file=$file/leaderboard.jsonl
    [[ -e $file || ! -e $file.gz ]] || file+=.gz
    read_json result "$file"
done >"$work/lines"
# Records of --definition and --workload: what these files say, by their names, {} where there are none.
while IFS=$'\t' read -r definition workload; do
    file=$workload line=1
    [[ -e $file || ! $file =~ ^(.*):([0-9]+)$ ]] || { file=${BASH_REMATCH[1]} line=${BASH_REMATCH[2]}; }
    [[ ${opt[format]} == flashinfer ]] || continue
    { is_input "$definition" && is_input "$file"; } || die 2 "no file '$definition' or '$file', which a record is of"
    { jq -c . "$definition" && sed -n "${line}p" "$file"; } 2>/dev/null |
        jq -sc --arg key "$definition"$'\t'"$workload" \
            '{($key): {definition: .[0], workload: (.[1] | .workload // .)}}' 2>/dev/null ||
        die 2 "no JSON in '$definition' or line $line of '$file', which a record is of"
done < <(jqf export/published_keys -rs "$work/lines" || true) | jq -sc 'add // {}' >"$work/published"
jqf export/rows -c --slurp --slurpfile published "$work/published" \
    --arg group "${opt[group]}" --arg status "${opt[status]}" \
    --argjson kernels "$(values_of kernel | jq -Rnc '[inputs]')" "$work/lines" >"$work/rows"
[[ -s $work/rows ]] || die 2 "nothing to export: no record of these in ${words[*]}"
if [[ ${opt[format]} == kernel-tuner-cache ]]; then
    spaces=$(jq -r '"\(.kernel) \(.group)"' "$work/rows" | sort -u)
    [[ $(wc -l <<<"$spaces") -eq 1 ]] ||
        die 2 "a cache file takes one kernel and one group (--kernel, --group), not $(paste -sd ';' <<<"$spaces")"
fi
sources=/dev/null
if [[ $many_files -eq 1 && ${opt[format]} != rbk-report ]]; then
    sources=$work/sources
    # By the name that an #include has: its place below kernels/, or the file's own name.
    jq -Rn 'reduce inputs as $line ({}; .[input_filename | sub(".*/(kernels|include|export)/"; "")] += $line + "\n")' \
        "$here"/../{include/*.h,kernels/*.cu,kernels/*/*.cuh} "$lib"/export/*.cu* >"$sources"
fi
jqf "export/${opt[format]//-/_}" -r --slurp --slurpfile sources "$sources" \
    --slurpfile lines "$work/lines" "$work/rows" >"$work/done"
[[ -s $work/done ]] || die 2 "nothing to export as ${opt[format]}: no result of a problem that it can hold"
if [[ $many_files -eq 1 ]]; then # a line per file: its path, a tab, its contents as JSON, text as a string
    while IFS=$'\t' read -r path contents; do
        mkdir -p "$(dirname "${opt[out]}/$path")"
        [[ $contents != \"* ]] || contents=$(jq -r . <<<"$contents")
        printf '%s\n' "$contents" >>"$work/tree.$(sha256sum <<<"$path" | cut -c1-32)"
        echo "$path" >>"$work/paths"
    done <"$work/done"
    sort -u "$work/paths" | while read -r path; do
        replace_file "${opt[out]}/$path" <"$work/tree.$(sha256sum <<<"$path" | cut -c1-32)"
    done
    exit 0
fi
put_out "${opt[out]}" <"$work/done"
