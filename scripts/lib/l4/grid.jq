# The runs of the grid: each kernel of the ladder, with the tile of its rules, on each shape. $kernels: its names.
.shapes[] | . as $p | $kernels[] |
"--kernel \(.) --batch \($p.batch) --heads \($p.heads) --seq \($p.seq) --dim \($p.dim)" +
    (if $p.causal then " --causal" else "" end)
