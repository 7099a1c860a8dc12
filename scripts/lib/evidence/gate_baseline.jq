# ladder.json as the ratios that the gate asks for, on the canonical problem.
# $rungs: names, lowest first; $tiles: by name.
def options: if . == "" then "" else split(",") | map(" --" + sub("="; " ")) | add end;
$rungs[0] as $base | map(select(.problem == "2,8,512,64")) as $rows |
([$rows[] | select(.kernel == $base)][0]) as $low |
($base + if $tiles[$base] == "" then "" else ":" + $tiles[$base] end) as $vs |
reduce $rungs[1:][] as $kernel ({over: {($base): 1}, rows: []};
    ([$rows[] | select(.kernel == $kernel and .ratio != null)][0]) as $row |
    if $row and .over[$row.vs] then
        .over[$kernel] = .over[$row.vs] * $row.ratio |
        .rows += [{kernel: $kernel, vs: $vs, args: ("--timing graph" + ($tiles[$kernel] | options)),
            ratio: .over[$kernel], problem: $row.problem, variant: $row.variant, arch: $row.arch,
            config: $row.config, code_sha256: $row.code_sha256, vs_config: $low.config,
            vs_code_sha256: $low.code_sha256, git: $row.git}]
    else . end) |
.rows
