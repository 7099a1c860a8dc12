# Tics and range of an $axis (x or y) for the values of $knob in the cells of $kernel.
.[] | select(.kernel == $kernel) | .cells | map(.[$knob]) | unique |
"set \($axis)tics (\(to_entries | map("\"\(.value)\" \(.key)") | join(", ")))",
"set \($axis)range [-0.5:\(length - 0.5)]"
