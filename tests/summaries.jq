# The summaries that the tests write as JSON: a function each, of the lines of a run (with jq -s).
def count($verdict): map(select(.verdict == $verdict)) | length;

# The cheats of an earlier summary that need no second run: those that were asked for, tried on the same device and from
# the same files. $asked: lines that begin with a name.
def cheats_settled:
    ($asked | split("\n") | map(split(" ")[0])) as $names |
    select(.device == $device and .sha256 == $sha256) | .cheats[] |
    select(.verdict != "NOT-RUN" and (.name | IN($names[])));

# The lines of the cheats as their summary. $device; $asked: lines "NAME NEEDS WAY ..." of all that were to be tried;
# $ways: lines "WAY:what it is"; $sha256: of the files that they are made of.
def cheats:
    map(.name) as $tried |
    [$asked | split("\n")[] | select(. != "") | split(" ") | select(.[0] | IN($tried[]) | not) |
        {name: .[0], way: .[2], verdict: "NOT-RUN", gate: "not reached"}] as $not_reached |
    (. + $not_reached) as $cheats | $cheats |
    {what: "cheats", device: $device, sha256: $sha256, caught: count("CAUGHT"), missed: count("MISSED"),
        not_run: count("NOT-RUN"), not_reached: ($not_reached | map(.name)), cheats: .,
        ways: ($ways | split("\n") | map(split(":") as $way | {way: $way[0], is: $way[1]} +
            ($cheats | map(select(.way == $way[0])) | {tried: (length - count("NOT-RUN")), caught: count("CAUGHT")})))};

# The lines of the controls (with jq -s) as their summary.
def controls:
    {what: "controls", caught: count("CAUGHT"), missed: count("MISSED"), runs: map(.runs) | add, controls: .};

# The lines of the mutants (with jq -s) as their summary. $known: how many the table has; a sample tries fewer.
def hopper_mutants:
    (map(select(.verdict == "CAUGHT")) | length) as $caught |
    {what: "hopper_mutants", caught: $caught, missed: (length - $caught), known: $known,
        kernels: (group_by(.kernel) |
            map({kernel: .[0].kernel, caught: map(select(.verdict == "CAUGHT")) | length, of: length})),
        mutants: .};

# The lines of the mutants (with jq -s) as their summary. $explained: lines of FILE, FUNCTION, STATEMENT, NUMBER, WHY by
# tabs; $all: 1 when every kernel was looked at, so that an explanation without a survivor is stale; $known: how
# many mutants there are.
def mutants:
    def place: {file, function, statement, number};
    def is_line: length > 0 and (startswith("#") | not);
    ($explained | split("\n") | map(select(is_line) | split("\t") |
        {file: .[0], function: .[1], statement: .[2], number: (.[3] | tonumber)})) as $keys |
    map(select(.verdict == "CAUGHT")) as $caught | map(select(.verdict != "CAUGHT")) as $survivors |
    {what: "mutants", caught: ($caught | length), missed: ($survivors | length), known: $known,
        unexplained: (map(select(.verdict == "SURVIVED")) | length),
        kernels: (group_by(.kernel) |
            map({kernel: .[0].kernel, caught: map(select(.verdict == "CAUGHT")) | length, of: length})),
        stale: (if $all == 1 then $keys - ($survivors | map(place)) else [] end),
        survivors: ($survivors | map({kernel} + place + {why})), mutants: map({kernel} + place + {by})};

# The summary of the mutants for people.
def mutants_text:
    (.stale[] | "an explanation, and no survivor: \(.file) \(.function) \(.statement) \(.number)"),
    "\(.caught) of \(.caught + .missed) caught, \(.missed) survived, \(.unexplained) of them without an explanation";

# The runs of the race detector's controls (with jq -s) as their summary. cmocka names a failed test twice.
def race_controls:
    def of($is): map(select(.is == $is));
    def names: map(.name) | unique;
    {what: "race_controls", racy: (of("racy") | names | length), clean: (of("clean") | names | length),
        missed: (of("racy") | map(select(.good | not)) | names),
        accused: (of("clean") | map(select(.good | not)) | names), runs: (map(select(.good)) | length)};

# The lines of the faults as their summary.
def faults:
    def total(f): map(select(f).count) | add // 0;
    {what: "faults", kills: total(.name | startswith("kill_")), survived: total(.verdict == "SURVIVED"),
        failed: (map(select(.verdict == "FAILED")) | length), not_run: (map(select(.verdict == "NOT-RUN")) | length),
        faults: .};

# The lines of the fuzzers (with jq -s) as their summary.
def fuzz:
    {what: "fuzz", executions: (map(.executions) | add), failed: count("FAIL"), targets: .};

# The cases of an earlier summary that need no second try: those of the same device, tried by what is asked for now.
def wrong_settled:
    select(.gpu == $gpu) | .cases[] |
    select(.sha256 and ($run == 0 or .ordinary != null) and ($gate == 0 or .gate != null)) |
    "\(.name) \(.sha256)\t\(tojson)";

# Cases of wrong kernels as their summary. $names: those that were to be tried, a line each; $gate: 1 when the gate was.
# Without it nothing counts as missed.
def wrong:
    def caught(f): if length == 0 or any(.[]; f == null) then null else map(select(f)) | length end;
    {what: "wrong", device: $device, gpu: $gpu, kernels: length, ordinary: caught(.ordinary),
        gate: (if $gate == 1 then map(select(.gate)) | length else null end),
        missed: (if $gate == 1 then map(select(.gate | not) | .name) else [] end),
        not_reached: (($names | split("\n") | map(select(. != ""))) - map(.name)), seconds: $seconds,
        cases: sort_by(.name)};
