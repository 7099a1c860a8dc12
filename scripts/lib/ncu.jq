# Nsight Compute's raw CSV as metrics and gates.
include "record";

def cells: [scan("\"((?:[^\"]|\"\")*)\"")[0] | gsub("\"\""; "\"")];

# "1,234.5" and "12.5" are numbers; "n/a", "nan" and text are not.
def number:
    if . == null then null
    else gsub(","; "") | if test("^[-+]?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$") then tonumber else null end
    end;

def ratio($part; $whole):
    if $part == null or $whole == null then null
    elif $whole == 0 then (if $part == 0 then 0 else null end)
    else 100 * $part / $whole
    end;

# The CSV (as one string) and the bench's record as metrics by our names, and gates with verdicts. $maps:
# [metrics.json], $gate_files: [thresholds], $records: [the record] or [], $tensor_cores: the registry's word, or null.
def gates:
    $maps[0] as $map | $gate_files[0] as $gates | $records[0] as $record |

    # What the launch bounds leave a thread: the register file over the threads, in steps of 8.
    def register_bound:
        if ($record.config.maxreg // 0) > 0 then $record.config.maxreg
        elif .threads then [255, (65536 / .threads / 8 | floor) * 8] | min
        else null
        end;

    # The grid may be too small to fill what the limits allow: that is the problem's doing, not the kernel's.
    def warps_launched_pct:
        [.blocks_by_registers, .blocks_by_smem, .blocks_by_warps, .blocks_by_blocks] as $limits |
        if ($limits | any(. == null)) or .grid == null or ($record.device.sm_count // 0) == 0 or
            ($record.occupancy.fraction // 0) == 0 then null
        else 100 * ($limits + [.grid / $record.device.sm_count | ceil] | min) * (.threads / 32) /
            ($record.occupancy.warps_per_sm / $record.occupancy.fraction)
        end;

    # Wide: a row of names, a row of units, a row per launch.
    [split("\n")[] | select(startswith("\""))] as $lines |
    ([$lines[] | select(startswith("\"ID\","))][0] // "" | cells) as $names |
    ([$lines[] | select(test("^\"[0-9]+\","))] | map(cells)) as $launches |
    ($launches[0] // []) as $cells |
    (reduce range($names | length) as $i ({}; .[$names[$i]] = $cells[$i])) as $raw |
    ($map.metrics | with_entries(.value |= ([.[] | $raw[.] | number | values] | first // null))) as $read |
    $read + {
        kernel_name: $raw["Kernel Name"],
        bank_conflict_load_pct: ratio($read.bank_conflicts_load; $read.wavefronts_load),
        bank_conflict_store_pct: ratio($read.bank_conflicts_store; $read.wavefronts_store),
        spill_bytes: ($record.ptxas | if . then .spill_store_bytes + .spill_load_bytes else null end),
        smem_limit_bytes: $record.device.smem_block_bytes,
        register_bound: ($read | register_bound),
        warps_launched_pct: ($read | warps_launched_pct)
    } | .warps_active_of_launched_pct = ratio(.warps_active_pct; .warps_launched_pct) |
    . as $m |

    def limit: if type == "string" then $m[.] else . end;
    def at_most: [.at_most, .or_at_most // empty | limit] | map(values); # every limit that is known
    def rule: if .at_least != null then ">= \(.at_least | limit)"
        else "<= \(.at_most | limit)" + if .or_at_most then " or <= \(.or_at_most | limit)" else "" end end;
    def applies: (.needs_tensor_cores and $tensor_cores == "none") | not;
    def word: if . then "PASS" else "FAIL" end;
    def verdict: $m[.value] as $x |
        if (applies | not) or $x == null then "NOT-RUN"
        elif .at_least != null then (.at_least | limit) as $least | $least != null and $x >= $least | word
        elif at_most == [] then "NOT-RUN"
        else at_most | any($x <= .) | word
        end;
    def reason: if verdict != "NOT-RUN" then null
        elif applies | not then "the kernel declares no tensor cores"
        elif $m[.value] == null then "not in the report"
        else "no limit known"
        end;
    {
        kernel: $record.kernel, variant: $record.variant, arch: $record.ptxas.arch,
        code_sha256: $record.provenance.code_sha256, git: $record.provenance.git, config: $record.config,
        problem: $record.problem, device: $record.device, tensor_cores: $tensor_cores,
        launches: ($launches | length), metrics: $m,
        gates: ($gates | map({gate, value, measured: $m[.value], unit, rule: rule, applies: applies, verdict: verdict,
            reason: reason}))
    } | .verdict = (if .launches != 1 then "NOT-RUN" elif any(.gates[]; .verdict == "FAIL") then "FAIL"
        elif any(.gates[]; .applies and .verdict == "NOT-RUN") then "NOT-RUN" else "PASS" end);

# Why the result of gates is no verdict.
def not_run: "NOT-RUN: " + if .launches != 1 then "the report holds \(.launches) launches of fa_kernel, not one"
    else "not every gate could be judged" end;

# The result of gates as text: a heading, then a line per gate, by tabs.
def text:
    def three: if type == "number" then . * 1000 | round / 1000 else . // "-" end;
    "\(.kernel // "kernel") on \(.device.name // "a recorded device"): " +
    "\(.launches) launch(es) of \(.metrics.kernel_name // "nothing")",
    (.gates[] | [.verdict, .gate, "\(.measured | three) \(.unit)", .rule, .reason // ""] | @tsv);

# The name of a record's files.
def name: .variant + (.problem | "_\(.batch)x\(.heads)x\(.seq_q)x\(.dim)" +
        if .causal then "_causal" else "" end + (typed | sub(" "; "_"))) +
    (.config // {} | to_entries | map("_\(.key)\(.value)") | join(""));
