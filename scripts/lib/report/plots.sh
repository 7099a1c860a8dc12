# shellcheck shell=bash disable=SC2154 # $dir and $work are the caller's; load of page.sh has read the rows
# The pictures of a page, by gnuplot. Sourced by report.sh. Each plot_NAME fails where it has nothing to draw.
# An SVG follows the reader's light or dark scheme: what gnuplot draws in black or light grey changes with it.

# Colours that survive colour blindness; shapes and dashes that survive a black-and-white printer.
style='
set style line 1 lc rgb "#0072b2" lw 2 pt 7 dt 1
set style line 2 lc rgb "#d55e00" lw 2 pt 5 dt 2
set style line 3 lc rgb "#009e73" lw 2 pt 9 dt 3
set style line 4 lc rgb "#cc79a7" lw 2 pt 13 dt 4
set style line 5 lc rgb "#000000" lw 2 pt 11 dt 5
set style line 6 lc rgb "#e69f00" lw 2 pt 4 dt 1
set style line 7 lc rgb "#56b4e9" lw 2 pt 6 dt 2
set style line 8 lc rgb "#808080" lw 2 pt 8 dt 3
set grid lc rgb "#cccccc" lw 0.5
set border 3
set key spacing 1.2
set tics nomirror
set datafile separator "\t"
'

dark='<style>@media (prefers-color-scheme: dark) { .paper { fill: #15181c }
[fill="black"], [fill="rgb(  0,   0,   0)"] { fill: #e4e7eb }
[color="black"], [color="rgb(  0,   0,   0)"] { color: #e4e7eb }
[stroke="black"], [stroke="rgb(  0,   0,   0)"] { stroke: #e4e7eb } .gridline { stroke: #3a424b } }</style>'

draw() { # NAME WIDTH HEIGHT: gnuplot commands on stdin -> plots/NAME.svg
    local name=$1 svg
    mkdir -p "$dir/plots"
    svg="set terminal svg size $2,$3 dynamic font 'Helvetica,13' background 'white' name '$name'"
    gnuplot -e "$svg; set output '$work/$name.svg'" - <<<"$style$(cat)" || die 6 "gnuplot failed on $name"
    awk -v dark="$dark" '/^<desc>/ {print; print dark; next}
        /^<rect x="0" y="0" .* fill="#ffffff"\/>/ {sub(/fill=/, "class=\"paper\" fill=")} {print}' \
        "$work/$name.svg" | replace_file "$dir/plots/$name.svg"
}

# The ladder on every problem it was climbed on: TFLOP/s, log scale, the number on the bar, p50's interval.
plot_ladder() {
    local problems=() i=0 plot='' problem place at
    mapfile -t problems < <(jqf plots/ladder_problems -r "$work/ladder.jsonl")
    [[ ${#problems[@]} -gt 0 ]] || return 1
    for problem in "${problems[@]}"; do
        jqf plots/ladder_bars -r --arg problem "$problem" "$work/ladder.jsonl" >"$work/ladder.$i"
        place="(\$1 + ($i - ${#problems[@]} / 2.0 + 0.5) * 0.27)"
        at="$place:2"
        plot+="${plot:+, }'$work/ladder.$i' using $at:(0.25) with boxes ls $((i + 1)) dt 1 lw 1"
        plot+=" fs solid 0.85 noborder title '$problem'"
        plot+=", '' using $at:(\$2 < 10 ? sprintf('%.1f', \$2) : sprintf('%.0f', \$2)) with labels"
        plot+=" offset 0,0.8 font ',9' notitle"
        plot+=", '' using $place:5:(0):(\$6 - \$5) with vectors nohead lw 4 lc rgb '#000000' notitle"
        i=$((i + 1))
    done
    draw ladder 900 420 <<END
set title 'The ladder: full attention, TFLOP/s (higher is better, log scale)'
set key title 'B,H,S,D' font ',10'
set logscale y
set ylabel 'TFLOP/s'
set yrange [1:*]
set xrange [-0.6:*]
set key top left
set offsets 0, 0.6, 0, 0
set bmargin 3.5
set xtics ($(jqf plots/ladder_tics -r "$work/ladder.jsonl"))
plot $plot
END
}

# Best p50 over the other knobs, for each (m, warps), of the canonical problem where it was swept.
plot_sweep() {
    local kernels=() kernel name plot='' width
    zcat -f "$dir/$(there leaderboard.jsonl)" | jqf plots/sweep_cells -cnR >"$work/sweep"
    mapfile -t kernels < <(jq -r '.[].kernel' "$work/sweep")
    [[ ${#kernels[@]} -gt 0 ]] || return 1
    for kernel in "${kernels[@]}"; do
        jqf plots/sweep_labels -r --arg kernel "$kernel" "$work/sweep" >"$work/sweep.$kernel"
        plot+="
set title '${kernel//_/\\_}'"
        for name in x:m y:warps; do
            plot+="
$(jqf plots/sweep_axis -r --arg kernel "$kernel" --arg axis "${name%:*}" --arg knob "${name#*:}" "$work/sweep")"
        done
        plot+="
plot '$work/sweep.$kernel' using 1:2:(0.48):(0.48):3 with boxxyerror fs solid noborder lc palette notitle"
        plot+=", '' using 1:2:4 with labels font ',10' tc rgb '#111111' notitle"
    done
    width=$((${#kernels[@]} < 2 ? 560 : 80 + 330 * ${#kernels[@]}))
    name=$(jq -r '.[0].group | split("|")[2]' "$work/sweep")
    draw sweep $width 360 <<END
set multiplot layout 1,${#kernels[@]} title 'Sweep: best p50 in us over the other knobs ($name)'
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
    local device peak bandwidth kernels=() kernel plot='' i=0
    device=$(roofs)
    [[ -n $device ]] || return 1
    peak=$(jq .peak <<<"$device") bandwidth=$(jq '.gbytes / 1000' <<<"$device")
    mapfile -t kernels < <(jqf plots/roof_kernels -r "$work/ladder.jsonl")
    for kernel in "${kernels[@]}"; do
        i=$((i + 1))
        jqf plots/roof_points -r --arg kernel "$kernel" "$work/ladder.jsonl" | sort -n >"$work/roof.$i"
        plot+=", '$work/roof.$i' using 1:2 with linespoints ls $i ps 1.1 title '${kernel//_/\\_}'"
    done
    draw roofline 900 460 <<END
set title 'Roofline: full attention of B,H,S,D; bytes counted once (Q, K, V read, O written)'
set logscale xy
set xlabel 'FLOP per byte'
set ylabel 'TFLOP/s'
set key outside right
set xrange [32:8192]
set xtics (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
set yrange [0.5:$peak * 2]
$(jqf plots/roof_marks -r "$work/ladder.jsonl")
set label 101 sprintf('tensor peak at boost clock, %.0f TFLOP/s', $peak) at 40, $peak * 1.3 font ',10'
set label 102 sprintf('DRAM, %.2f TB/s', $bandwidth) at 36, $bandwidth * 36 * 0.62 font ',10'
plot (x * $bandwidth < $peak ? x * $bandwidth : $peak) with lines lc rgb '#000000' lw 1.5 notitle$plot
END
}

has_column() { # FILE COLUMN: any number there
    awk -v c="$2" '$c != "nan" {found = 1} END {exit !found}' "$1"
}

# Six panels, head dimension by mask: TFLOP/s over sequence length at constant work (batch x seq = 16384, heads x dim =
# 2048), in pairs, at the pace that most shapes were measured at.
plot_peers() {
    local dim causal mask plot='' file panels=0 lines names i columns pace='launches back to back'
    columns=$(jqf plots/peers_columns -c "$work/versus.jsonl")
    mapfile -t names < <(jq -r '.peers[].name' <<<"$columns")
    [[ $(jq -r .pace <<<"$columns") != rested ]] || pace='each launch after a pause, with a cold L2'
    for causal in false true; do
        mask=$([[ $causal == true ]] && echo causal || echo full)
        for dim in 64 128 256; do
            file=$work/peers.$dim.$causal
            jqf plots/peers_points -r --argjson dim "$dim" --argjson causal "$causal" --argjson columns "$columns" \
                "$work/versus.jsonl" >"$file"
            [[ -s $file ]] || continue
            panels=$((panels + 1))
            lines="'$file' using 1:2 with linespoints ls 1 lw 3 title 'fa\\_bench'"
            for i in "${!names[@]}"; do
                ! has_column "$file" $((i + 3)) ||
                    lines+=", '' using 1:$((i + 3)) with linespoints ls $((i + 2)) title '${names[i]//_/\\_}'"
            done
            plot+="
set title 'D=$dim $mask'
plot $lines
unset key"
        done
    done
    [[ $panels -gt 0 ]] || return 1
    draw peers $((panels < 3 ? 330 * panels + 60 : 1100)) $((panels > 3 ? 700 : 400)) <<END
set multiplot layout $(((panels + 2) / 3)),$((panels < 3 ? panels : 3)) \
    title 'In pairs by sequence length, $pace: TFLOP/s (higher is better)'
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
