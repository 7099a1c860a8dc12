#!/usr/bin/env bash
# From evidence/<gpu>/ a page with pictures: the ladder, the sweep, the roofline, the peers. Nothing is measured here.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/report.sh [options]
  --dir DIR     one evidence folder (default: every folder of evidence/ that holds something to draw)
  --png         PNG beside each SVG
  --dry-run     say what would be drawn from what
Reads ladder.json, leaderboard.jsonl, sweeps.jsonl, micro_best.json, peers.json, peers_*.json, versus.json, parity.json and ncu/*.json, as far as they are there; writes report.html and
plots/*.svg beside them. What is missing is NOT-RUN on the page. Exit: 0, 2 usage, 4 no gnuplot, no jq or no evidence, 6 a failure.
USAGE
}

die() { # CODE TEXT
    echo "report.sh: $2" >&2
    exit "$1"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
dirs=() png=0 dry_run=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --dir) [[ $# -ge 2 ]] || die 2 "--dir needs a folder"; dirs+=("$2"); shift ;;
        --png) png=1 ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        *) die 2 "unknown option $1 (see --help)" ;;
    esac
    shift
done
for tool in jq gnuplot; do
    command -v "$tool" >/dev/null || die 4 "NOT-RUN: no $tool: run scripts/setup.sh"
done
[[ ${#dirs[@]} -gt 0 ]] || mapfile -t dirs < <(find evidence -mindepth 2 -maxdepth 2 \( -name ladder.json -o -name 'leaderboard.jsonl*' -o -name peers.json \) -printf '%h\n' | sort -u)
[[ ${#dirs[@]} -gt 0 ]] || die 4 "NOT-RUN: nothing to draw in evidence/ (scripts/evidence.sh on a GPU makes it)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Colours that survive colour blindness; shapes and dashes that survive a black-and-white printer.
style='
set style line 1 lc rgb "#0072b2" lw 2 pt 7 dt 1
set style line 2 lc rgb "#d55e00" lw 2 pt 5 dt 2
set style line 3 lc rgb "#009e73" lw 2 pt 9 dt 3
set style line 4 lc rgb "#cc79a7" lw 2 pt 13 dt 4
set style line 5 lc rgb "#000000" lw 2 pt 11 dt 5
set style line 6 lc rgb "#e69f00" lw 2 pt 4 dt 1
set style line 7 lc rgb "#56b4e9" lw 2 pt 6 dt 2
set style line 8 lc rgb "#666666" lw 2 pt 8 dt 3
set grid lc rgb "#cccccc" lw 0.5
set border 3
set key spacing 1.2
set tics nomirror
set datafile separator "\t"
'

draw() { # NAME WIDTH HEIGHT: gnuplot commands on stdin -> plots/NAME.svg
    local name=$1 commands
    commands=$style$(cat)
    mkdir -p "$dir/plots"
    gnuplot -e "set terminal svg size $2,$3 dynamic font 'Helvetica,13' background 'white' name '$name'; set output '$work/$name.svg'" - <<<"$commands" || die 6 "gnuplot failed on $name"
    mv "$work/$name.svg" "$dir/plots/$name.svg"
    [[ $png -eq 0 ]] || gnuplot -e "set terminal pngcairo size $2,$3 font 'Helvetica,11' background 'white'; set output '$dir/plots/$name.png'" - <<<"$commands"
}

# The ladder on every problem it was climbed on: TFLOP/s, log scale, the number on the bar.
plot_ladder() {
    local problems=() i=0 plot='' problem fill
    mapfile -t problems < <(jq -r 'map(select(.tflops != null)) | map(.problem) | unique_by(split(",") | map(tonumber) | .[0] * .[1] * .[2] * .[2] * .[3]) | .[]' "$dir/ladder.json")
    [[ ${#problems[@]} -gt 0 ]] || return 1
    for problem in "${problems[@]}"; do
        jq -r --arg p "$problem" '(map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | min) | map(.[0].kernel)) as $order |
            .[] | select(.problem == $p and .tflops != null) | .kernel as $k | [($order | index($k)), .tflops, .kernel, (.p50_us | . * 10 | round / 10)] | @tsv' "$dir/ladder.json" >"$work/ladder.$i"
        fill=$((100 - i * 75 / (${#problems[@]} > 1 ? ${#problems[@]} - 1 : 1)))
        plot+="${plot:+, }'$work/ladder.$i' using (\$1 + ($i - ${#problems[@]} / 2.0 + 0.5) * 0.27):2:(0.25) with boxes lc rgb '#0072b2' lw 1 fs solid $((fill / 100)).$(printf '%02d' $((fill % 100))) border lc rgb '#004060' title '$problem'"
        plot+=", '' using (\$1 + ($i - ${#problems[@]} / 2.0 + 0.5) * 0.27):2:(\$2 < 10 ? sprintf('%.1f', \$2) : sprintf('%.0f', \$2)) with labels offset 0,0.6 font ',9' notitle"
        i=$((i + 1))
    done
    # shellcheck disable=SC2016
    jq -r 'map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | min) | to_entries | map("\"\(.value[0].kernel | gsub("_"; "\\\\_"))\" \(.key)") | join(", ")' "$dir/ladder.json" >"$work/tics"
    draw ladder 900 420 <<END
set title 'The ladder: full attention, TFLOP/s (higher is better, log scale)'
set key title 'B,H,S,D' font ',10'
set logscale y
set ylabel 'TFLOP/s'
set yrange [1:*]
set xrange [-0.6:*]
set key top left
set offsets 0, 0.6, 0, 0
set xtics ($(cat "$work/tics"))
plot $plot
END
}

# Best p50 over the other knobs, for each (m, warps): "x" where all that was tried is infeasible or wrong, "-" where nothing was.
# The canonical problem where it was swept. An old source's lines are left out (an infeasible tile has no compiled source to tell).
plot_sweep() {
    local kernels=() kernel plot=''
    jq -cnR '[inputs | fromjson? | select(has("knobs"))] | map(select((.status != "pass" or .p50_us != null) and (.knobs | test("(^|,)m=")) and (.knobs | test("warps=")))) |
        group_by(.group) | (map(select(.[0].group | test("\\|2,8,8,512,512,64,full\\|fp32$"))) + (sort_by(length) | reverse)) | .[0] // [] |
        group_by(.kernel) | map(([.[].source_sha256 | values] | last) as $now | map(select(.source_sha256 == null or .source_sha256 == $now))) | map(select(any(.[]; .p50_us != null))) | map({kernel: .[0].kernel, group: .[0].group, cells:
            (map((.knobs | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber)}) | add) + {p50: .p50_us}) | group_by([.m, .warps]) | map({m: .[0].m, warps: .[0].warps, p50: (map(.p50 | values) | min)}))}) |
        sort_by(.cells | map(.p50 | values) | min) | reverse | .[:4]' < <(zcat -f "$dir/$sweep_log") >"$work/sweep"
    mapfile -t kernels < <(jq -r '.[].kernel' "$work/sweep")
    [[ ${#kernels[@]} -gt 0 ]] || return 1
    for kernel in "${kernels[@]}"; do
        jq -r --arg k "$kernel" '.[] | select(.kernel == $k) | .cells as $c | ($c | map(.m) | unique) as $ms | ($c | map(.warps) | unique) as $ws | $ws[] as $w | $ms[] as $m |
            ([$c[] | select(.m == $m and .warps == $w)][0]) as $cell | [($ms | index($m)), ($ws | index($w)), ($cell.p50 // "nan"), (if $cell == null then "-" elif $cell.p50 then ($cell.p50 | if . < 100 then . * 10 | round / 10 | tostring | if contains(".") then . else . + ".0" end else round | tostring end) else "x" end)] | @tsv' "$work/sweep" >"$work/sweep.$kernel"
        plot+="
set title '${kernel//_/\\_}'
set xtics ($(jq -r --arg k "$kernel" '.[] | select(.kernel == $k) | .cells | map(.m) | unique | to_entries | map("\"\(.value)\" \(.key)") | join(", ")' "$work/sweep"))
set ytics ($(jq -r --arg k "$kernel" '.[] | select(.kernel == $k) | .cells | map(.warps) | unique | to_entries | map("\"\(.value)\" \(.key)") | join(", ")' "$work/sweep"))
set xrange [-0.5:$(jq -r --arg k "$kernel" '.[] | select(.kernel == $k) | .cells | map(.m) | unique | length - 0.5' "$work/sweep")]
set yrange [-0.5:$(jq -r --arg k "$kernel" '.[] | select(.kernel == $k) | .cells | map(.warps) | unique | length - 0.5' "$work/sweep")]
plot '$work/sweep.$kernel' using 1:2:(0.48):(0.48):3 with boxxyerror fs solid noborder lc palette notitle, '' using 1:2:4 with labels font ',10' notitle"
    done
    draw sweep $((${#kernels[@]} < 2 ? 560 : 80 + 330 * ${#kernels[@]})) 360 <<END
set multiplot layout 1,${#kernels[@]} title 'Sweep: best p50 in us over the other knobs ($(jq -r '.[0].group | split("|")[2]' "$work/sweep"))'
set palette defined (0 '#ffffcc', 1 '#7fb8d8', 2 '#3d7ab5')
unset colorbox
unset grid
set logscale cb
set xlabel 'M (rows of a tile)'
set ylabel 'warps'
$plot
unset multiplot
END
}

# Where each rung lies under the roofs of the device that ran it. FLOP and bytes are the problem's own.
plot_roofline() {
    local device peak bandwidth kernels=() kernel plot='' i=0 marks
    device=$(find "$dir/ladder" -name '*.json' 2>/dev/null | sort | while read -r file; do jq -c 'select(.throughput.peak_boost_tflops != null) | {peak: .throughput.peak_boost_tflops, gbytes: .device.memory_gbytes_per_s}' "$file"; done | jq -sc 'max_by(.peak) // empty')
    [[ -n $device ]] || return 1
    peak=$(jq .peak <<<"$device") bandwidth=$(jq '.gbytes / 1000' <<<"$device")
    mapfile -t kernels < <(jq -r 'map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | max) | reverse | .[:8] | .[][0].kernel' "$dir/ladder.json")
    for kernel in "${kernels[@]}"; do
        i=$((i + 1))
        jq -r --arg k "$kernel" '.[] | select(.kernel == $k and .tflops != null) | [(.problem | split(",") | (.[2] | tonumber) / 2), .tflops] | @tsv' "$dir/ladder.json" | sort -n >"$work/roof.$i"
        plot+=", '$work/roof.$i' using 1:2 with linespoints ls $i ps 1.1 title '${kernel//_/\\_}'"
    done
    marks=$(jq -r 'map(select(.tflops != null) | .problem) | unique | group_by(split(",")[2])[] | (.[0] | split(",") | (.[2] | tonumber) / 2) as $x |
        "set arrow from \($x), graph 0 to \($x), graph 1 nohead lc rgb \"#bbbbbb\" dt 3 back", "set label \"\(join("\\n"))\" at \($x), graph 0.06 center font \",9\" tc rgb \"#444444\" front"' "$dir/ladder.json")
    draw roofline 900 460 <<END
set title 'Roofline: full attention of B,H,S,D; bytes counted once (Q, K, V read, O written)'
set logscale xy
set xlabel 'FLOP per byte'
set ylabel 'TFLOP/s'
set key outside right
set xrange [32:8192]
set xtics (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
set yrange [0.5:$peak * 2]
$marks
set label 101 sprintf('tensor peak at boost clock, %.0f TFLOP/s', $peak) at 40, $peak * 1.3 font ',10'
set label 102 sprintf('DRAM, %.2f TB/s', $bandwidth) at 36, $bandwidth * 36 * 0.62 font ',10'
plot (x * $bandwidth < $peak ? x * $bandwidth : $peak) with lines lc rgb '#000000' lw 1.5 notitle$plot
END
}

# Six panels, head dimension by mask: TFLOP/s over sequence length at constant work (batch x seq = 16384, heads x dim = 2048).
plot_peers() {
    local dim causal name plot='' file panels=0 lines fa3=fa3_scaled
    ! jq -e 'map(select(.ratio != null)) | all(.[]; .peers.fa3)' "$dir/peers.json" >/dev/null || fa3=fa3 # measured on every shape
    has() { awk -v c="$1" '$c != "nan" {found = 1} END {exit !found}' "$work/peers.$dim.$causal"; } # COLUMN: any time of that peer
    for causal in false true; do
        for dim in 64 128 256; do
            file=$work/peers.$dim.$causal
            jq -r --argjson d "$dim" --argjson c "$causal" --arg fa3 "$fa3" 'map(select(.dim == $d and .causal == $c and .us != null and .batch * .seq == 16384 and .heads * .dim == 2048)) | sort_by(.seq) | .[] |
                (4 * .batch * .heads * .dim * (if .causal then .seq * (.seq + 1) / 2 else .seq * .seq end) / 1e6) as $mflop |
                [.seq, $mflop / .us, (.peers | [.fa2, .cudnn, .[$fa3]] | .[] | if . then $mflop / . else "nan" end)] | @tsv' "$dir/peers.json" >"$file"
            [[ -s $file ]] || continue
            panels=$((panels + 1))
            name="D=$dim $([[ $causal == true ]] && echo causal || echo full)"
            plot+="
set title '$name'"
            lines="'$file' using 1:2 with linespoints ls 1 lw 3 title 'fa\\_bench'"
            has 3 && lines+=", '' using 1:3 with linespoints ls 8 title 'FlashAttention 2'"
            has 4 && lines+=", '' using 1:4 with linespoints ls 2 title 'cuDNN'"
            has 5 && lines+=", '' using 1:5 with linespoints ls 3 title 'FlashAttention 3$([[ $fa3 == fa3 ]] || echo ' (scaled)')'"
            plot+="
plot $lines
unset key"
        done
    done
    [[ $panels -gt 0 ]] || return 1
    draw peers $((panels < 3 ? 330 * panels + 60 : 1100)) $((panels > 3 ? 700 : 400)) <<END
set multiplot layout $(((panels + 2) / 3)),$((panels < 3 ? panels : 3)) title 'Peers by sequence length: TFLOP/s (higher is better)'
set logscale x 2
set xtics (512, '1k' 1024, '2k' 2048, '4k' 4096, '8k' 8192, '16k' 16384)
set xrange [430:19500]
set yrange [0:*]
set key bottom right font ',10'
set xlabel 'sequence length' font ',11'
set ylabel 'TFLOP/s' font ',11'
$plot
unset multiplot
END
}

picture() { # NAME SOURCE CAPTION: drawn and shown, or why not
    local name=$1 source=$2 caption=$3
    if [[ -s $dir/$source ]] && "plot_$name"; then
        echo "<figure><img src=\"plots/$name.svg\" alt=\"$caption\"><figcaption>$caption</figcaption></figure>"
    else
        echo "<p class=\"missing\">NOT-RUN: $name: no usable $source</p>"
    fi
}

table() { # SOURCE HEADINGS JQ: rows from jq as arrays; nothing without the source
    [[ -s $dir/$1 ]] || return 0
    echo "<table><tr>$(sed -E 's/([^|]+)\|?/<th>\1<\/th>/g' <<<"$2")</tr>"
    jq -r "def n: if . == null then \"-\" elif . >= 100 then round else . * 100 | round / 100 end; $3"' | "<tr>" + (map("<td>\(. // "-" | tostring | @html)</td>") | join("")) + "</tr>"' "$dir/$1"
    echo "</table>"
}

page() {
    local gates
    cat <<END
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>fa_bench on $(basename "$dir")</title>
<style>
body { font: 15px/1.45 Helvetica, Arial, sans-serif; max-width: 1060px; margin: 2em auto; padding: 0 1em; color: #111; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; } th, td { padding: 2px 9px; border-bottom: 1px solid #bbb; text-align: left; }
td { font-variant-numeric: tabular-nums; } figure { margin: 1.5em 0; } img { max-width: 100%; } figcaption { font-size: 13px; color: #444; }
.missing { color: #8a4b00; } .FAIL { font-weight: bold; } @media print { body { margin: 0; font-size: 11px; } figure, table { break-inside: avoid; } }
</style></head><body>
<h1>fa_bench on $(basename "$dir")</h1>
<p>Made by <code>scripts/report.sh</code> from the records in this folder. Times are p50 per launch; how they are taken and what a verdict
means is in the README. Where FlashAttention 3 is called scaled, its time is that of a table, by cuDNN now over cuDNN in that table.</p>
<h2>The ladder</h2>
END
    picture ladder ladder.json "Each rung on the problems it was climbed on; a bar's label is TFLOP/s."
    table ladder.json 'B,H,S,D|kernel|p50 us|p90 us|TFLOP/s|over|ratio' \
        'sort_by([(.problem | split(",") | map(tonumber) | .[0] * .[1] * .[2] * .[2] * .[3]), -(.p50_us // 0)]) | .[] | [.problem, .kernel, (.p50_us | n), (.p90_us | n), (.tflops | n), .vs, (.ratio | n)]'
    echo "<h2>Roofline</h2>"
    picture roofline ladder.json "Where the rungs lie under the device's roofs."
    echo "<h2>Sweep</h2>"
    picture sweep "$sweep_log" "Best time of each tile height and warp count; pale is fast; x: infeasible or wrong, -: not tried."
    sweep_rates
    sweep_stages
    table micro_best.json 'p50 us|p90 us|kernel|tile|registers|shared bytes' '.[] | [(.p50_us | n), (.p90_us | n), .kernel, .knobs, .registers, .smem_bytes]'
    echo "<h2>Peers</h2>"
    picture peers peers.json "fa_bench's kernels beside FlashAttention 2 and cuDNN through PyTorch, and FlashAttention 3."
    [[ ! -s $dir/peers.json ]] || jq -r 'map(.ratio | values) | if . == [] then "" else "<p>Best peer / ours: geometric mean \(map(log) | add / length | exp | . * 1000 | round / 1000) over \(length) shapes; above 1 in \(map(select(. > 1)) | length).</p>" end' "$dir/peers.json"
    for file in "$dir"/peers.json "$dir"/peers_*.json; do
        [[ $file == "$dir/peers.json" || -s $file ]] || continue
        table "$(basename "$file")" 'B,H,S,D|mask|kernel|ours us|TFLOP/s|best peer|its us|ratio' \
            '.[] | ["\(.batch),\(.heads),\(.seq),\(.dim)", (if .causal then "causal" else "full" end), .variant // .kernel, (.us | n), (.tflops | n), .best_peer, (.peers[.best_peer // ""] | n), (.ratio | n)]'
    done
    if [[ -s $dir/versus.json ]]; then
        echo "<h2>Beside the fused library in one process</h2>"
        table versus.json 'B,H,S,D|kernel|us|library|its us|ratio|95 % interval|FlashAttention 3, scaled, us|its ratio' \
            '.[] | [.problem, .variant // .kernel, (.p50_us | n), .vs, (.vs_p50_us | n), (if .ratio then .ratio | n else .status end), (if .ci95 then "\(.ci95[0] | n) to \(.ci95[1] | n)" else "" end), (.fa3_scaled | n), (if .fa3_scaled and .p50_us then .fa3_scaled / .p50_us | n else "" end)]'
    fi
    if [[ -s $dir/parity.json ]]; then
        echo "<h2>The same result as PyTorch's</h2>"
        table parity.json 'kernel|problems and inputs that agree|that do not|not run|largest difference to PyTorch|to FP64' \
            'group_by(.kernel)[] | [.[0].kernel, (map(select(.verdict == "PASS")) | length), (map(select(.verdict == "FAIL")) | length), (map(select(.verdict == "NOT-RUN")) | length), (map(.max_abs_difference_to_torch // 0) | max), (map(.max_abs_err // 0) | max)]'
    fi
    echo "<h2>Nsight Compute</h2>"
    mapfile -t gates < <(find "$dir/ncu" -name '*.json' ! -name '*.record.json' 2>/dev/null | sort)
    [[ ${#gates[@]} -gt 0 ]] || echo '<p class="missing">NOT-RUN: no profile in ncu/</p>'
    for file in "${gates[@]}"; do
        jq -r 'def n: if . == null then "-" else . * 100 | round / 100 end;
            "<h3>\(.kernel | @html)\(.problem | if . then " at \(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)" else "" end):\(" ")\(.config | to_entries | map("\(.key)=\(.value)") | join(" ") | @html)</h3><table><tr><th>gate</th><th>measured</th><th>rule</th><th>verdict</th></tr>",
            (.gates[] | "<tr><td>\(.gate | @html)</td><td>\(.measured | n) \(.unit)</td><td>\(.rule | @html)</td><td class=\"\(.verdict)\">\(.verdict)\(if .reason then ": \(.reason)" else "" end)</td></tr>"), "</table>"' "$file"
    done
    echo "</body></html>"
}

# How fast the sweeps were: the last eight.
sweep_rates() {
    [[ -s $dir/sweeps.jsonl ]] || return 0
    jq -cnR '[inputs | fromjson? | select(.per_second)] | .[-8:]' "$dir/sweeps.jsonl" >"$work/sweeps.json"
    echo '<table><tr><th>sweep of</th><th>B,H,Hkv,S,Skv,D</th><th>strategy</th><th>candidates</th><th>with result</th><th>measured now</th><th>compiled anew</th><th>seconds</th><th>per second</th><th>per minute</th></tr>'
    jq -r '.[] | [.kernel, (.group | split("|")[2]), .strategy, .candidates, (.status | to_entries | map("\(.key) \(.value)") | join(", ")), .measured, .compiled_cold, .seconds, .per_second, (.per_second * 60 | round)] |
        "<tr>" + (map("<td>\(. | tostring | @html)</td>") | join("")) + "</tr>"' "$work/sweeps.json"
    echo '</table>'
}

# Where a candidate's wall time went, on average over those that were timed.
sweep_stages() {
    jq -cnR '[inputs | fromjson? | select(.status == "pass" and .stage_s != null and .p50_us != null)] | group_by(.kernel) | map({kernel: .[0].kernel, n: length,
        compile: (map(.compile_s) | add / length), stages: ([("start", "check", "timing", "recheck", "turn") as $k | {($k): (map(.stage_s[$k]) | add / length)}] | add)})' < <(zcat -f "$dir/$sweep_log" 2>/dev/null) >"$work/stages.json" || return 0
    [[ $(jq length "$work/stages.json") -gt 0 ]] || return 0
    echo '<table><tr><th>mean seconds of a candidate of</th><th>compile</th><th>start (driver)</th><th>check</th><th>timing</th><th>check again</th><th>of these, waiting for the GPU</th></tr>'
    jq -r 'def n: . * 1000 | round / 1000; .[] | [.kernel, (.compile | n), (.stages | (.start, .check, .timing, .recheck, .turn) | n)] | "<tr>" + (map("<td>\(. | tostring | @html)</td>") | join("")) + "</tr>"' "$work/stages.json"
    echo '</table><p>Several candidates are compiled and checked while one is timed.</p>'
}

for dir in "${dirs[@]}"; do
    [[ -d $dir ]] || die 2 "no folder $dir"
    sweep_log=leaderboard.jsonl
    [[ -s $dir/$sweep_log || ! -s $dir/$sweep_log.gz ]] || sweep_log+=.gz
    if [[ $dry_run -eq 1 ]]; then
        for source in ladder.json "$sweep_log" peers.json; do
            echo "$dir/$source: $([[ -s $dir/$source ]] && echo "drawn" || echo "missing")"
        done
        continue
    fi
    page >"$work/report.html"
    cp "$work/report.html" "$dir/report.html.tmp" && mv "$dir/report.html.tmp" "$dir/report.html"
    echo "$dir/report.html"
done
