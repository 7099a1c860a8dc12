# The tiles that passed, the fastest first.
map(select(.status == "pass" and .p50_us != null and (.loosened | not))) | sort_by(.p50_us) | .[].knobs
