# The registry as the rows of the table of kernels.
def tile: "m=\(.m) n=\(.n) warps=\(.warps) vec=\(.vec) stages=\(.stages)";
.[] | select(.variant_of == null) |
(if .defaults then .defaults | tile else "library" end) as $tile |
"| `\(.name)`\(if .default then " (default)" else "" end) | \(.idea) | \($tile) | \(.tensor_cores) | " +
"\(if .emulated then "yes" else "no" end) |"
