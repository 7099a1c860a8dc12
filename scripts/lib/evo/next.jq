# The next configurations to try. Input: all results of this kernel, problem and class so far, as one array.
# Args: $space (knob -> values), $strategy (grid|random|evo), $seed, $count.
# Output: up to $count knob strings, none tried before.

# Park and Miller's minimal standard generator: state in, state out, exact in a double.
def step: . * 16807 % 2147483647;
def stream($seed): [limit(64; ($seed % 2147483646 + 1) | recurse(step))] | last; # mixes small seeds apart

def text: to_entries | map("\(.key)=\(.value)") | join(",");

def all: [$space | to_entries[] | .key as $k | [.value[] | {($k): .}]] | [combinations | add];

# A permutation by a random key per element.
def shuffled($seed):
    . as $list | reduce range($list | length) as $i ({state: stream($seed), out: []};
        .state |= step | .out += [{key: .state, value: $list[$i]}]) | .out | sort_by(.key) | map(.value);

# One child: each knob from one of two parents, one time in four moved to a neighbour in its list, one time in twelve to
# any value.
def child($parents): # input: the generator's state; output: {state, knobs}
    step as $s1 | ($s1 | step) as $s2 |
    ($parents[$s1 % ($parents | length)]) as $a | ($parents[$s2 % ($parents | length)]) as $b |
    reduce ($space | to_entries[]) as $knob ({state: $s2, knobs: {}};
        .state |= step | (if .state % 2 == 0 then $a else $b end)[$knob.key] as $from |
        .state |= step | .state as $roll | ($knob.value | index($from) // 0) as $at |
        (if $roll % 12 == 0 then ($roll / 12 | floor) % ($knob.value | length)
         elif $roll % 4 != 1 then $at elif $roll % 8 == 1 then $at + 1 else $at - 1 end) as $to |
        ($knob.value | length - 1) as $last |
        .knobs[$knob.key] = $knob.value[if $to < 0 then 0 elif $to > $last then $last else $to end]);

# One knob moved to a neighbour in its list: the last steps to an optimum, which crossover alone takes by chance.
def neighbours: . as $knobs | [$space | to_entries[] | .key as $k | .value as $values |
    ($values | index($knobs[$k])) as $at | select($at != null) |
    ($at - 1, $at + 1) | select(. >= 0 and . < ($values | length)) | $knobs + {($k): $values[.]} | text];

def children($parents; $tried; $want; $seed):
    reduce range($want * 20) as $i ({state: stream($seed), out: []};
        if (.out | length) >= $want then . else
            (.state | child($parents)) as $c | .state = $c.state | ($c.knobs | text) as $t |
            if ($tried[$t] or (.out | index($t))) then . else .out += [$t] end
        end) | .out;

(map({(.knobs): true}) | add // {}) as $tried |
def untried: map(select($tried[.] | not));
(map(select(.status == "pass" and .p50_us != null)) | sort_by(.p50_us) | .[:8] |
    map(.knobs | split(",") | map(split("=") | {(.[0]): (.[1] | tonumber)}) | add)) as $parents |
if $strategy == "grid" then all | map(text) | untried | .[:$count]
elif $strategy == "random" or ($parents | length) < 4 then
    all | map(text) | untried | shuffled($seed) | .[:$count]
else
    ($seed + length) as $drawn |
    ($parents[0] | neighbours | untried | shuffled($drawn) | .[:($count + 2) / 3 | floor]) as $near |
    ($tried + ($near | map({(.): true}) | add // {})) as $known |
    ($near + children($parents; $known; $count - ($near | length); $drawn)) as $born |
    $born + ((all | map(text) | untried | map(select(. as $t | $born | index($t) | not)) | shuffled($drawn)) |
        .[:$count - ($born | length)])
end | .[]
