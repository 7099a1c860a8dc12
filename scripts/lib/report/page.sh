# shellcheck shell=bash disable=SC2154 # $dir, $work and $sweep_log are the caller's
# A page of one evidence folder, $dir, in HTML, its style and script inside: it needs no network. Sourced by
# scripts/evidence/report.sh.

section() { # ID TITLE: begins a section, which the table of contents lists
    [[ ! -s $work/contents ]] || echo "</section>"
    echo "$1 $2" >>"$work/contents"
    echo "<section id=\"$1\"><h2>$2</h2>"
}

# Where the numbers come from: a link to each file that is there, and the commits that they name.
records() { # FILE...
    local file links='' commits
    for file; do
        [[ -e $dir/$file ]] || continue
        links+="${links:+, }<a href=\"$file\">$file</a>"
        [[ $file != *.json || ! -f $dir/$file ]] || echo "$dir/$file"
    done >"$work/sources"
    [[ -n $links ]] || return 0
    commits=$(xargs -r cat <"$work/sources" | jq -rs '[.. | objects | .git | strings] | unique | join(", ")')
    echo "<p class=\"records\">Records: $links${commits:+; commit $commits}.</p>"
}

picture() { # NAME SOURCE CAPTION: drawn and shown, or why not
    local name=$1 source=$2 caption=$3
    if [[ -s $dir/$source ]] && "plot_$name"; then
        echo "<figure><div class=\"scroll\" tabindex=\"0\"><img src=\"plots/$name.svg\" alt=\"$caption\"></div>"
        echo "<figcaption>$caption From <a href=\"$source\">$source</a>;" \
            "<a href=\"plots/$name.svg\">the picture alone</a>.</figcaption></figure>"
    else
        echo "<p class=\"missing\">NOT-RUN: $name: no usable $source</p>"
    fi
}

# Rows that a function of report.jq makes of a file; nothing without the file.
table() { # SOURCE HEADINGS ROWS
    [[ -s $dir/$1 ]] || return 0
    table_of "$2" "$3" "$dir/$1"
}
table_of() { # HEADINGS ROWS FILE
    jq -L "$lib" -r --slurpfile records "$work/records" --arg headings "$1" \
        "include \"html\"; include \"report\"; html_table(\$headings; $2)" "$3"
}

# What the summary and the page of all GPUs are made from: PROGRAM on the files that are there.
of_files() { # PROGRAM OPTIONS...
    local name files=() file
    for name in ladder peers gate sanitize parity bound; do
        file=$dir/$name.json
        [[ -s $file ]] || file=/dev/null
        files+=(--slurpfile "$name" "$file")
    done
    file=$dir/sweeps.jsonl
    [[ -s $file ]] || file=/dev/null
    jqf "$1" -n "${@:2}" "${files[@]}" --slurpfile sweeps "$file" --argjson peak "$(peak_of_device)"
}
peak_of_device() {
    find "$dir/ladder" -name '*.json' -exec cat {} + 2>/dev/null | jqf report/roofs -sc | jq -s '.[0].peak'
}

environment() {
    find "$dir" -name '*.json' | sort | xargs -r cat | jqf report/environment -rs
}

ladder() {
    picture ladder ladder.json "Each kernel on the problems that all were measured on. A bar's label is TFLOP/s; the
orange mark is the 95 % interval of its p50."
    table ladder.json "B,H,S,D|kernel|tile|#p50 us|95 % interval|#p90 us|#TFLOP/s|over|#ratio|95 % interval" \
        "ladder_rows(\$records[0])"
    records ladder.json ladder
}

# How fast the sweeps were: the last eight; and where a candidate's wall time went, on average over those timed.
sweep() {
    local headings='sweep of|B,H,Hkv,S,Skv,D|strategy|#candidates|with result|#measured now|#compiled anew|#seconds'
    picture sweep "$sweep_log" \
        "Best time of each tile height and warp count; pale is fast; x: infeasible or wrong, -: not tried."
    if [[ -s $dir/sweeps.jsonl ]]; then
        jq -cnR '[inputs | fromjson? | select(.per_second)] | .[-8:]' "$dir/sweeps.jsonl" >"$work/sweeps.json"
        table_of "$headings|#per second|#per minute" rate_rows "$work/sweeps.json"
    fi
    headings='mean seconds of a candidate of|#compile|#start (driver)|#check|#timing|#check again'
    if [[ -s $dir/$sweep_log ]]; then
        zcat -f "$dir/$sweep_log" | jqf report/stages -cnR >"$work/stages.json"
        table_of "$headings|#of these, waiting for the GPU" stage_rows "$work/stages.json"
        echo '<p class="hint">Several candidates are compiled and checked while one is timed.</p>'
    fi
    table micro_best.json '#p50 us|#p90 us|kernel|tile|#registers|#shared bytes' best_rows
    records leaderboard.json "$sweep_log" sweeps.jsonl micro_best.json
}

peers() {
    local file headings='B,H,S,D|mask|kernel|#ours us|#TFLOP/s|best library|#its us|#ratio, alone'
    echo '<p>A ratio is the library'"'"'s time over ours: above 1 ours is faster. <b>Alone</b>: each is timed by itself,
at the clock that its power allows. <b>In pairs</b>: the two take turns in one process, at one clock.</p>'
    picture peers peers.json \
        "fa_bench's kernels beside FlashAttention 2 and cuDNN through PyTorch, and FlashAttention 3."
    [[ ! -s $dir/peers.json ]] || jqf report/peers_said -r "$dir/peers.json"
    [[ ! -s $dir/peers.json ]] || picture paired peers.json "Every shape, alone and in pairs."
    for file in "$dir"/peers.json "$dir"/peers_*.json; do
        [[ -s $file ]] || continue
        echo "<h3>$(jq -L "$lib" -r 'include "typed"; (map(.kernel | values) | unique | join(", ")) + (.[0] | typed) |
            @html' "$file") beside libraries</h3>"
        table "${file##*/}" "$headings|in pairs with|#ratio, in pairs|95 % interval" peer_rows
        records "${file##*/}"
    done
}

# From pairs alone: each ratio was measured in one process.
paces() {
    local headings='B,H/Hkv,S,D|pace|kernel|#alone, us|#TFLOP/s|#clock, MHz|#% of the tensor peak'
    echo '<p>Both take turns in one process; above 1 ours is faster. <b>Sustained</b>: launches back to back, as under
load. <b>Rested</b>: each launch after a pause, with a cold L2, as NVIDIA publishes its times.</p>'
    if ! jq -e 'any(.[]; .pace == "rested" and .ratio)' "$dir/versus.json" >/dev/null 2>&1; then
        echo '<p class="missing">No pair was measured rested yet:' \
            '<code>scripts/evidence/evidence.sh versus</code> on a GPU measures both paces.</p>'
    fi
    table versus.json 'kernel|pace|peer|#shapes|#ratio, geometric mean|#least|#most|#ahead' pace_rows
    picture paces versus.json "Every shape at both paces, over the fastest of its peers; lines are 95 % intervals."
    table versus.json "$headings|#in pairs, us|peer|#its us|#ratio|95 % interval" versus_rows
    records versus.json versus.jsonl.gz
}

bounds() {
    local headings
    echo '<p>The bound is the time below which this machine code cannot run: the busiest of its units, counted from the
instructions. 100 % is at the bound; a run above 100 % would be an error of the bound.</p>'
    zcat -f "$dir/bound.json.points.jsonl.gz" | jq -s 'map(select(.us and .bound_us))' >"$work/bounds"
    picture bound bound.json.points.jsonl.gz "Measured times over their bounds; on the line is at the bound."
    picture pipes bound.json.points.jsonl.gz "The rungs of the ladder by pipe: the tallest bar is the bound, the line
at 100 % the measured time."
    headings='#tensor us|#mufu us|#fma us|#alu us|#shared us|#issue us|#l2 us'
    table_of "kernel|B,H,S,D|#p50 us|#bound us|$headings|what binds" pipe_rows "$work/bounds"
    headings='#points|#least %|#median %|#most %|#below the bound'
    table_of "kernel|$headings|what binds" bound_kernel_rows "$work/bounds"
    echo '<p>The fastest tile of each kernel and problem; all points are in the records.</p>'
    table_of 'kernel|B,H,S,D|tile|#p50 us|#bound us|#% of the bound|what binds' bound_rows "$work/bounds"
    records bound.json bound.json.points.jsonl.gz
}

correct() {
    local name
    for name in gate:'The problem matrix against attention in FP64' sanitize:"compute-sanitizer's four tools"; do
        [[ -s $dir/${name%%:*}.json ]] || continue
        echo "<h3>${name#*:}</h3>"
        table "${name%%:*}.json" 'kernel|#passed|#failed|#skipped|#not run' counted_rows
        records "${name%%:*}.json" "${name%%:*}.cases.jsonl.gz"
    done
}

profiles() {
    local runs
    mapfile -t runs < <(find "$dir/ncu" -name '*.json' ! -name '*.record.json' 2>/dev/null | sort)
    if [[ ${#runs[@]} -eq 0 ]]; then
        echo '<p class="missing">NOT-RUN: no profile in ncu/</p>'
        return
    fi
    cat "$lib/report/gates.html"
    jq -n --arg dir "$dir/" '[inputs | {file: (input_filename | ltrimstr($dir)), of: .}]' "${runs[@]}" >"$work/runs"
    jqf report/gates -r "$work/runs"
    records ncu
}

sections() {
    section ladder "The ladder"
    ladder
    section roofline "Roofline"
    picture roofline ladder.json "Where the kernels lie under the device's roofs: tensor peak and DRAM."
    section sweep "Sweeps"
    sweep
    section peers "Peers"
    peers
    section paces "Peers at both paces"
    paces
    if [[ -s $dir/serving.jsonl ]]; then
        section serving "Serving: decode, chunked prefill"
        jq -s . "$dir/serving.jsonl" >"$work/serving"
        table_of 'B,H,S,D|#key heads|#keys|mask|kernel|tile|#p50 us|95 % interval|#TFLOP/s|#GB/s' serving_rows \
            "$work/serving"
        records serving.jsonl
    fi
    if [[ -s $dir/bound.json.points.jsonl.gz ]]; then
        section bounds "Bounds"
        bounds
    fi
    section profiles "Profile: Nsight Compute's gates"
    profiles
    if [[ -s $dir/gate.json || -s $dir/sanitize.json ]]; then
        section correct "Right results"
        correct
    fi
    if [[ -s $dir/parity.json ]]; then
        section parity "The same result as PyTorch's"
        table parity.json \
            'kernel|#agree|#do not|#not run|#largest difference to PyTorch|#to FP64' parity_rows
        records parity.json
    fi
    echo "</section>"
}

head_of_page() { # TITLE
    echo '<!doctype html>'
    echo '<html lang="en"><head><meta charset="utf-8">'
    echo '<meta name="viewport" content="width=device-width, initial-scale=1">'
    echo '<link rel="icon" href="data:,">'
    printf '<title>%s</title>\n<style>\n%s\n</style></head><body>\n<h1>%s</h1>\n' "$1" "$(<"$lib/report/page.css")" "$1"
}
end_of_page() {
    printf '<script>\n%s\n</script>\n</body></html>\n' "$(<"$lib/report/page.js")"
}

page() {
    local id title
    find "$dir" -path "$dir/ladder/*.json" | sort >"$work/files"
    echo '{}' >"$work/records"
    [[ ! -s $work/files ]] ||
        xargs jq -L "$lib" -n --arg dir "$dir" 'import "report" as m; m::records' <"$work/files" >"$work/records"
    : >"$work/contents"
    sections >"$work/sections"
    head_of_page "fa_bench on $(basename "$dir")"
    environment
    echo '<section id="summary"><h2>Summary</h2>'
    of_files report/cards -r
    echo '<p class="hint">Times are p50 of a launch; how they are taken is in docs/timing.md, what a verdict means in
docs/correctness.md. Which rows are of today'"'"'s machine code is in <a href="README.md">README.md</a>. A click on a
heading sorts its table. Made by <code>scripts/evidence/report.sh</code> from the records in this folder.</p>'
    echo '<nav aria-label="Contents"><ul>'
    while read -r id title; do
        echo "<li><a href=\"#$id\">$title</a></li>"
    done <"$work/contents"
    echo '</ul></nav></section>'
    cat "$work/sections"
    end_of_page
}

# The page of all GPUs, side by side, from their folders, which lie side by side too.
page_of_all() { # DIR...
    for dir; do
        of_files report/index -c --arg folder "${dir##*/}"
    done >"$work/index"
    head_of_page "fa_bench on $# GPUs"
    echo '<p>One row a GPU; its name leads to its report. Above 1 a kernel of fa_bench is faster than the best library;
<b>alone</b>: each timed by itself, <b>in pairs</b>: taking turns in one process. <b>Right</b>: cases of the problem
matrix; <b>clean</b>: runs of compute-sanitizer.</p>'
    jqf report/index_tables -rs "$work/index"
    end_of_page
}
