# shellcheck shell=bash disable=SC2154 # $dir, $work and $sweep_log are the caller's
# A page of one evidence folder, $dir, in HTML. Sourced by scripts/report.sh.

picture() { # NAME SOURCE CAPTION: drawn and shown, or why not
    local name=$1 source=$2 caption=$3
    if [[ -s $dir/$source ]] && "plot_$name"; then
        echo "<figure><img src=\"plots/$name.svg\" alt=\"$caption\"><figcaption>$caption</figcaption></figure>"
    else
        echo "<p class=\"missing\">NOT-RUN: $name: no usable $source</p>"
    fi
}

# Rows that a function of lib/report/rows.jq makes of a file, as arrays; nothing without the file.
table() { # SOURCE HEADINGS ROWS
    [[ -s $dir/$1 ]] || return 0
    table_of "$2" "$3" "$dir/$1"
}
table_of() { # HEADINGS ROWS FILE
    echo "<table><tr>$(sed -E 's/([^|]+)\|?/<th>\1<\/th>/g' <<<"$1")</tr>"
    jq -L "$lib" -r "include \"report/rows\"; $2 | html_row" "$3"
    echo "</table>"
}

# How fast the sweeps were: the last eight.
sweep_rates() {
    [[ -s $dir/sweeps.jsonl ]] || return 0
    jq -cnR '[inputs | fromjson? | select(.per_second)] | .[-8:]' "$dir/sweeps.jsonl" >"$work/sweeps.json"
    local headings='sweep of|B,H,Hkv,S,Skv,D|strategy|candidates|with result|measured now|compiled anew|seconds'
    table_of "$headings|per second|per minute" rate_rows "$work/sweeps.json"
}

# Where a candidate's wall time went, on average over those that were timed.
sweep_stages() {
    [[ -s $dir/$sweep_log ]] || return 0
    zcat -f "$dir/$sweep_log" | jqf report/stages -cnR >"$work/stages.json"
    [[ $(jq length "$work/stages.json") -gt 0 ]] || return 0
    local headings='mean seconds of a candidate of|compile|start (driver)|check|timing|check again'
    table_of "$headings|of these, waiting for the GPU" stage_rows "$work/stages.json"
    echo '<p>Several candidates are compiled and checked while one is timed.</p>'
}

peers_tables() {
    local file
    picture peers peers.json \
        "fa_bench's kernels beside FlashAttention 2 and cuDNN through PyTorch, and FlashAttention 3."
    [[ ! -s $dir/peers.json ]] || jqf report/peers_said -r "$dir/peers.json"
    for file in "$dir"/peers.json "$dir"/peers_*.json; do
        [[ ! -s $file ]] ||
            table "$(basename "$file")" 'B,H,S,D|mask|kernel|ours us|TFLOP/s|best peer|its us|ratio' peer_rows
    done
}

profiles() {
    local gates file
    mapfile -t gates < <(find "$dir/ncu" -name '*.json' ! -name '*.record.json' 2>/dev/null | sort)
    [[ ${#gates[@]} -gt 0 ]] || echo '<p class="missing">NOT-RUN: no profile in ncu/</p>'
    for file in "${gates[@]}"; do
        jqf report/gates -r "$file"
    done
}

page() {
    cat <<END
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>fa_bench on $(basename "$dir")</title>
<style>
body { font: 15px/1.45 Helvetica, Arial, sans-serif; max-width: 1060px; margin: 2em auto; padding: 0 1em; color: #111; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
th, td { padding: 2px 9px; border-bottom: 1px solid #bbb; text-align: left; }
td { font-variant-numeric: tabular-nums; }
figure { margin: 1.5em 0; } img { max-width: 100%; } figcaption { font-size: 13px; color: #444; }
.missing { color: #8a4b00; } .FAIL { font-weight: bold; }
@media print { body { margin: 0; font-size: 11px; } figure, table { break-inside: avoid; } }
</style></head><body>
<h1>fa_bench on $(basename "$dir")</h1>
<p>Made by <code>scripts/report.sh</code> from the records in this folder. Times are p50 per launch; how they are taken
is in docs/timing.md, what a verdict means in docs/correctness.md. Where FlashAttention 3 is called scaled, its time is
that of a table, by cuDNN now over cuDNN in that table.</p>
<h2>The ladder</h2>
END
    picture ladder ladder.json "Each rung on the problems it was climbed on; a bar's label is TFLOP/s."
    table ladder.json 'B,H,S,D|kernel|p50 us|p90 us|TFLOP/s|over|ratio' ladder_rows
    echo "<h2>Roofline</h2>"
    picture roofline ladder.json "Where the rungs lie under the device's roofs."
    echo "<h2>Sweep</h2>"
    picture sweep "$sweep_log" \
        "Best time of each tile height and warp count; pale is fast; x: infeasible or wrong, -: not tried."
    sweep_rates
    sweep_stages
    table micro_best.json 'p50 us|p90 us|kernel|tile|registers|shared bytes' best_rows
    echo "<h2>Peers</h2>"
    peers_tables
    if [[ -s $dir/versus.json ]]; then
        local headings='B,H,S,D|kernel|us|library|its us|ratio|95 % interval'
        echo "<h2>Beside the fused library in one process</h2>"
        table versus.json "$headings|FlashAttention 3, scaled, us|its ratio" versus_rows
    fi
    if [[ -s $dir/parity.json ]]; then
        local headings='kernel|problems and inputs that agree|that do not|not run'
        echo "<h2>The same result as PyTorch's</h2>"
        table parity.json "$headings|largest difference to PyTorch|to FP64" parity_rows
    fi
    echo "<h2>Nsight Compute</h2>"
    profiles
    echo "</body></html>"
}
