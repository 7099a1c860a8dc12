# The table for people, a line per kernel and dim.
.[] | (.ran | to_entries | map("\(.value) on \(.key)") | join(", ")) as $where |
"\(.kernel) dim \(.dim) for \(.arch): \(.points) of \(.of) points, \(.pass) pass (\($where)), " +
"\(.infeasible) infeasible, \(.holes) holes; M=64: \(.m64_pass) pass"
