# The registry as the rows of the table of kernels.
def tile: "m=\(.m) n=\(.n) warps=\(.warps) vec=\(.vec) stages=\(.stages)";
.[] | select(.variant_of == null) |
(if .defaults then .defaults | tile else "library" end) as $tile |
(if .kind == "library" then "library" elif .arch_specific then "sm_\(.min_arch)a"
    else "sm_\(.min_arch) and later" end) as $arch |
"| `\(.name)`\(if .default then " (default)" else "" end) | \(.idea) | \($tile) | \(.tensor_cores) | \($arch) | " +
"\(if .emulated then "yes" else "no" end) |"
