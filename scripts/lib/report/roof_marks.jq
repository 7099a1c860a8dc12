# ladder.json: an arrow and a label at the FLOP per byte of each problem.
map(select(.tflops != null) | .problem) | unique | group_by(split(",")[2])[] |
(.[0] | split(",") | (.[2] | tonumber) / 2) as $x |
"set arrow from \($x), graph 0 to \($x), graph 1 nohead lc rgb \"#bbbbbb\" dt 3 back",
"set label \"\(join("\\n"))\" at \($x), graph 0.06 center font \",9\" tc rgb \"#808080\" front"
