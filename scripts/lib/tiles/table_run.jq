# All lines as the table: an object per kernel and dim. $all: how many points there are in all, by "KERNEL DIM".
def count(f): map(select(f)) | length;
group_by([.kernel, .dim]) | map({kernel: .[0].kernel, dim: .[0].dim, arch: .[0].arch,
    ran: (map(select(.status == "pass") | .ran) | group_by(.) | map({(.[0]): length}) | add // {}),
    git: (map(.git) | unique | join(" ")), of: ($all[0][.[0].kernel + " " + (.[0].dim | tostring)]), points: length,
    pass: count(.status == "pass"), infeasible: count(.status == "infeasible"),
    holes: count(.status != "pass" and (.status != "infeasible" or (.reason // "") == "")),
    m64_pass: count(.status == "pass" and .m == 64), spill: count(.status == "pass" and .spill_bytes > 0),
    reasons: (map(select(.status == "infeasible") | .reason | gsub("[0-9]+ bytes of"; "N bytes of")) | group_by(.) |
        map({reason: .[0], points: length}) | sort_by(-.points))})
