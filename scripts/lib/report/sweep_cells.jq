# leaderboard.jsonl as cells, for up to four kernels: [{kernel, group, cells: [{m, warps, p50}]}], the fastest last.
# The canonical problem where it was swept, else the group with the most lines. Lines of an old source are left out (an
# infeasible tile has no compiled source to tell).
def knobs_of: .knobs | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber)}) | add;
def has_tile: .knobs | test("(^|,)m=") and test("warps=");
def is_canonical: .[0].group | test("\\|2,8,8,512,512,64,full\\|fp32$");
def of_last_source: ([.[].source_sha256 | values] | last) as $now |
    map(select(.source_sha256 == null or .source_sha256 == $now));
def cells: map(knobs_of + {p50: .p50_us}) | group_by([.m, .warps]) |
    map({m: .[0].m, warps: .[0].warps, p50: (map(.p50 | values) | min)});
[inputs | fromjson? | select(has("knobs"))] | map(select((.status != "pass" or .p50_us != null) and has_tile)) |
group_by(.group) | (map(select(is_canonical)) + (sort_by(length) | reverse)) | .[0] // [] |
group_by(.kernel) | map(of_last_source) | map(select(any(.[]; .p50_us != null))) |
map({kernel: .[0].kernel, group: .[0].group, cells: cells}) |
sort_by(.cells | map(.p50 | values) | min) | reverse | .[:4]
