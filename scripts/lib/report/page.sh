# shellcheck shell=bash disable=SC2154 # $dir and $work are the caller's
# A page of one evidence folder, $dir, in HTML, its style and script inside: it needs no network. Sourced by
# scripts/evidence/report.sh.

section() { # ID TITLE: a section, which the table of contents lists: what the function of this name prints
    echo "$1 $2" >>"$work/contents"
    echo "<section id=\"$1\"><h2>$2</h2>"
    "$1"
    echo "</section>"
}

check_folder() { # DIR: every file that its page is made of is whole
    local file kind
    for file in "$1"/*.json "$1"/*.jsonl "$1"/*.jsonl.gz; do
        [[ -e $file ]] || continue
        case ${file##*/} in
            ladder.jsonl* | versus.jsonl*) kind=record ;;
            serving.jsonl*) kind=row ;;
            peers*.json) kind=peer ;;
            dense*.jsonl | caches.jsonl) kind=beside ;;
            leaderboard.jsonl*) kind=line ;;
            leaderboard.json) kind=board ;;
            sweeps.jsonl*) kind=sweep ;;
            micro_best.json) kind=best ;;
            ncu.jsonl*) kind=profile ;;
            bound.json.points.jsonl*) kind=point ;;
            *) kind=any ;;
        esac
        read_json "$kind" "$file" >/dev/null
    done
}

there() { # NAME: the file of $dir, compressed or not; nothing where it is missing
    local name
    for name in "$1" "$1.gz"; do
        [[ ! -s $dir/$name ]] || { echo "$name"; return 0; }
    done
}

# Where the numbers come from: a link to each file that is there, and what is known of its machine code.
records() { # NAME...
    local name file links='' said='' stale=''
    for name; do
        file=$(there "$name")
        [[ -n $file ]] || continue
        links+="${links:+, }<a href=\"$file\">$file</a>"
        [[ ! -s $work/today.${dir//\//_}_$file.lines ]] ||
            stale+=$(jqf report/stale -rs "$work/today.${dir//\//_}_$file.lines")
        # shellcheck disable=SC2016 # Markdown's backticks
        [[ ! -s $work/said.$name ]] || said+=" $(sed 's/ (`.*`)//' "$work/said.$name")"
    done
    [[ -z $links ]] || echo "<p class=\"records\">Records: $links.$said</p>"
    [[ -z $stale ]] || echo "<p class=\"stale\">Not counted, of other machine code than today's: $stale.</p>"
}

picture() { # NAME SOURCE CAPTION: drawn and shown, or why not
    local name=$1 source caption=$3
    source=$(there "$2")
    if [[ -n $source ]] && "plot_$name"; then
        echo "<figure><div class=\"scroll\" tabindex=\"0\"><img src=\"plots/$name.svg\" alt=\"$caption\"></div>"
        echo "<figcaption>$caption From <a href=\"$source\">$source</a>;" \
            "<a href=\"plots/$name.svg\">the picture alone</a>.</figcaption></figure>"
    else
        echo "<p class=\"missing\">NOT-RUN: $name: no usable $2</p>"
    fi
}

# The rows of a file that are of today's machine code, as the jq COMMAND makes them, become the list $work/NAME.
load() { # NAME COMMAND...
    local file rows currency
    file=$(there "$1")
    echo '[]' >"$work/$1"
    [[ -n $file ]] || return 0
    today "$dir/$file"
    echo "$currency" >"$work/said.$1"
    "${@:2}" "$rows" >"$work/$1"
}

# Rows that a function of report.jq makes of a list; nothing of an empty one.
table() { # HEADINGS ROWS FILE
    [[ ! -s $3 ]] || jqf "report/html_table(\$headings; m::$2)" -r --arg headings "$1" "$3"
}

# What the summary and the page of all GPUs are made from: PROGRAM on the files that are there.
of_files() { # PROGRAM OPTIONS...
    local name files=() file
    for name in gate sanitize parity bound; do
        file=$dir/$name.json
        [[ -s $file ]] || file=/dev/null
        files+=(--slurpfile "$name" "$file")
    done
    file=$dir/sweeps.jsonl
    [[ -s $file ]] || file=/dev/null
    jqf "$1" -n "${@:2}" "${files[@]}" --slurpfile ladder "$work/ladder.jsonl" \
        --slurpfile versus "$work/versus.jsonl" --slurpfile serving "$work/serving.jsonl" --slurpfile sweeps "$file" \
        --argjson peak "$(roofs | jq -s '.[0].peak')"
}
roofs() { # {peak, gbytes} of the device that the ladder ran on; nothing without one
    local file
    file=$(there ladder.jsonl)
    [[ -z $file ]] || zcat -f "$dir/$file" | jqf report/roofs -sc
}

environment() {
    local file
    grep -H . "$work"/said.* 2>/dev/null | sed -E "s/.*said[.]([^:]*):/\1: /; s/Machine code equals today's: //
        s/ \(\`.*//; s/No row was looked at.*/not looked at/" >"$work/known" || true
    {
        find "$dir" -maxdepth 1 -name '*.json' | sort | xargs -r cat
        for file in "$dir"/*.jsonl "$dir"/*.jsonl.gz; do
            [[ ! -e $file ]] || { zcat -f "$file" && echo; }
        done
    } | jqf report/environment -rs --rawfile said "$work/known"
}

ladder() {
    picture ladder ladder.jsonl "Each kernel on the problems that all were measured on. A bar's label is TFLOP/s; the
short line at its top is the 95 % interval of its p50."
    table "B,H,S,D|kernel|tile|#p50 us|95 % interval|#p90 us|#TFLOP/s|over|#ratio|95 % interval" ladder_rows \
        "$work/ladder.jsonl"
    records ladder.jsonl
}

roofline() {
    picture roofline ladder.jsonl "Where the kernels lie under the device's roofs: tensor peak and DRAM."
}

serving() {
    table 'B,H,S,D|#key heads|#keys|mask|kernel|tile|#p50 us|95 % interval|#TFLOP/s|#GB/s' serving_rows \
        "$work/serving.jsonl"
    records serving.jsonl
}

parity() {
    table 'kernel|#agree|#do not|#not run|#largest difference to PyTorch|#to FP64' parity_rows "$dir/parity.json"
    records parity.json
}

# How fast the sweeps were: the last 24; and where a candidate's wall time went, on average over those timed.
sweep() {
    local headings='sweep of|B,H,Hkv,S,Skv,D|strategy|#candidates|with result|#measured now|#compiled anew|#seconds' log
    log=$(there leaderboard.jsonl)
    [[ -z $log ]] || picture sweep leaderboard.jsonl \
        "Best time of each tile height and warp count; pale is fast; x: infeasible or wrong, -: not tried."
    if [[ -s $dir/sweeps.jsonl ]]; then
        jq -cnR '[inputs | fromjson? | select(.per_second)] | .[-24:]' "$dir/sweeps.jsonl" >"$work/sweeps"
        table "$headings|#per second|#per minute" rate_rows "$work/sweeps"
    fi
    headings='mean seconds of a candidate of|#compile|#start (driver)|#check|#timing|#check again'
    if [[ -n $log ]]; then
        zcat -f "$dir/$log" | jqf report/stages -cnR >"$work/stages"
        table "$headings|#of these, waiting for the GPU" stage_rows "$work/stages"
        echo '<p class="hint">Several candidates are compiled and checked while one is timed.</p>'
    fi
    table '#p50 us|#p90 us|kernel|tile|#registers|#shared bytes' best_rows "$dir/micro_best.json"
    records leaderboard.json leaderboard.jsonl sweeps.jsonl micro_best.json
}

# From pairs: each ratio was measured in one process.
paces() {
    local headings='B,H/Hkv,S,D|pace|kernel|#alone, us|#TFLOP/s|#clock, MHz|#% of the tensor peak'
    echo '<p>Both take turns in one process; above 1 ours is faster. <b>Sustained</b>: launches back to back, as under
load. <b>Rested</b>: each launch after a pause, with a cold L2, as NVIDIA publishes its times.</p>'
    if ! jq -e 'any(.[]; .pace == "rested" and .ratio)' "$work/versus.jsonl" >/dev/null 2>&1; then
        echo '<p class="missing">No pair was measured rested yet:' \
            '<code>scripts/evidence/evidence.sh versus</code> on a GPU measures both paces.</p>'
    fi
    picture peers versus.jsonl "TFLOP/s by sequence length, each peer in pairs with ours."
    table 'kernel|pace|peer|#shapes|#ratio, geometric mean|#least|#most|#ahead' pace_rows "$work/versus.jsonl"
    table "$headings|#in pairs, us|peer|#its us|#ratio|95 % interval" versus_rows "$work/versus.jsonl"
    records versus.jsonl
}

# Beside PyTorch's attention and libraries, each timed alone; most also in pairs.
peers() {
    local file name headings='B,H,S,D|mask|kernel|#ours us|#TFLOP/s|best library|#its us|#ratio, alone'
    dense_files "$dir" | while read -r file; do
        name=${file##*/}
        [[ -s $work/said.$name ]] || continue
        echo "<h3>$(jq -L "$lib" -r 'include "record"; (map(.kernel | values) | unique | join(", ")) + (.[0] | typed) |
            @html' "$work/$name") beside libraries (${name%.json*})</h3>"
        table "$headings|in pairs with|#ratio, in pairs|95 % interval" peer_rows "$work/$name"
        records "$name"
    done
}

bounds() {
    local headings
    echo '<p>The bound is the time below which this machine code cannot run: the busiest of its units, counted from the
instructions. 100 % is at the bound; a run above 100 % would be an error of the bound.</p>'
    zcat -f "$dir/bound.json.points.jsonl.gz" | jq -s 'map(select(.us and .bound_us))' >"$work/bounds"
    headings='#tensor us|#mufu us|#fma us|#alu us|#shared us|#issue us|#l2 us'
    table "kernel|B,H,S,D|#p50 us|#bound us|$headings|what binds" pipe_rows "$work/bounds"
    headings='#points|#least %|#median %|#most %|#below the bound'
    table "kernel|$headings|what binds" bound_kernel_rows "$work/bounds"
    echo '<p>The fastest tile of each kernel and problem; all points are in the records.</p>'
    table 'kernel|B,H,S,D|tile|#p50 us|#bound us|#% of the bound|what binds' bound_rows "$work/bounds"
    records bound.json bound.json.points.jsonl
}

correct() {
    local name
    for name in gate:'The problem matrix against attention in FP64' sanitize:"compute-sanitizer's four tools"; do
        [[ -s $dir/${name%%:*}.json ]] || continue
        echo "<h3>${name#*:}</h3>"
        table 'kernel|#passed|#failed|#skipped|#not run' counted_rows "$dir/${name%%:*}.json"
        records "${name%%:*}.json" "${name%%:*}.cases.jsonl"
    done
}

profiles() {
    cat "$lib/report/gates.html"
    jq -s . "$dir/ncu.jsonl" >"$work/runs"
    jqf report/gates -r "$work/runs"
    records ncu.jsonl
}

sections() {
    section ladder "The ladder"
    section roofline "Roofline"
    section paces "Peers at both paces"
    [[ -z $(dense_files "$dir") ]] || section peers "Peers, each timed alone"
    [[ $(jq length "$work/serving.jsonl") -eq 0 ]] || section serving "Serving: decode, chunked prefill"
    [[ -z $(there leaderboard.jsonl)$(there sweeps.jsonl) ]] || section sweep "Sweeps"
    [[ ! -s $dir/bound.json.points.jsonl.gz ]] || section bounds "Bounds"
    [[ ! -s $dir/ncu.jsonl ]] || section profiles "Profile: Nsight Compute's gates"
    [[ ! -s $dir/gate.json && ! -s $dir/sanitize.json ]] || section correct "Right results"
    [[ ! -s $dir/parity.json ]] || section parity "The same result as PyTorch's"
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

load_all() {
    local file
    rm -f "$work"/said.*
    load ladder.jsonl jqf ladder/table -s
    load versus.jsonl jqf pairs/rows -nR
    load serving.jsonl jq -s .
    while read -r file; do
        load "${file##*/}" jq -L "$lib" -s 'include "record"; map(by_peer)'
    done < <(dense_files "$dir")
}

page() {
    local id title
    load_all
    : >"$work/contents"
    sections >"$work/sections"
    head_of_page "fa_bench on $(basename "$dir")"
    environment
    echo '<section id="summary"><h2>Summary</h2>'
    of_files report/cards -r
    echo '<p class="hint">Times are p50 of a launch; how they are taken is in docs/timing.md, what a verdict means in
docs/correctness.md. Rows that were made with other machine code than today'"'"'s are left out; which files have any is
in <a href="README.md">README.md</a>. A click on a heading sorts its table. Made by
<code>scripts/evidence/report.sh</code> from the records in this folder.</p>'
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
        load_all
        of_files report/index -c --arg folder "${dir##*/}"
    done >"$work/index"
    head_of_page "fa_bench on $# GPUs"
    echo '<p>One row a GPU; its name leads to its report. Above 1 a kernel of fa_bench is faster than the best library;
in pairs, <b>back to back</b> or <b>rested</b>: each launch after a pause. <b>Right</b>: cases of the problem
matrix; <b>clean</b>: runs of compute-sanitizer.</p>'
    jqf report/index_tables -rs "$work/index"
    end_of_page
}
