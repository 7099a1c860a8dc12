# The kernels as gnuplot's tics.
include "report/climbed";
climbed | to_entries | map("\"\(.value | gsub("_"; "\\\\_"))\" \(.key)") | join(", ")
