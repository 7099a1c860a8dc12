# Tables of the documents and of the pages of scripts/evidence/report.sh.
include "pairs";
include "record";

# Tables of the page. A cell is a text; a number as {v, t}: its value, and what is shown; a link as {t, href}; null for
# nothing. A class goes with each of the objects. A heading that starts with "#" is over numbers.
def pad($width): tostring | "0" * ($width - length) + .;
def fixed($digits): pow(10; $digits) as $p | (. * $p | round) as $i |
    if $digits == 0 then $i | tostring else "\($i / $p | floor).\($i % $p | pad($digits))" end;
def scientific: (log10 | floor) as $e | "\(. / pow(10; $e) | fixed(1))e\($e)";
# Three figures: 1234, 123, 12.3, 1.23, 0.12, 2.4e-4.
def rounded: if . >= 99.95 then fixed(0) elif . >= 9.995 then fixed(1) elif . >= 0.01 or . == 0 then fixed(2)
    else scientific end;
def figure: if . == null then null else {v: ., t: rounded} end;
def whole: if . == null then null else {v: ., t: fixed(0)} end;
def decimals($d): if . == null then null else {v: ., t: fixed($d)} end;
# An interval is narrow: four figures, of a ratio three decimals.
def fine: if . >= 1000 then fixed(0) elif . >= 100 then fixed(1) elif . >= 10 then fixed(2) else fixed(3) end;
def between: if .[0] == null then null else "\(.[0] | fine) to \(.[1] | fine)" end;
def ratio_between: if .[0] == null then null else "\(.[0] | fixed(3)) to \(.[1] | fixed(3))" end;
def link($href): {t: ., href: $href};

def shown: if type == "object" then .t else . end | tostring | @html;
def linked: if type == "object" and .href then "<a href=\"\(.href | @html)\">\(shown)</a>" else shown end;
def html_cell($is_number): (if type == "object" then . else {} end) as $c |
    ([if $is_number then "n" else empty end, ($c.class // empty), if . == null then "none" else empty end]) as $class |
    "<td" + (if $class == [] then "" else " class=\"\($class | join(" "))\"" end) +
    (if $c.v != null then " data-v=\"\($c.v)\"" else "" end) + ">" + (if . == null then "-" else linked end) + "</td>";
def html_heading: startswith("#") as $is_number | ltrimstr("#") |
    "<th scope=\"col\"\(if $is_number then " class=\"n\"" else "" end)><button type=\"button\">\(@html)</button></th>";
def html_table($headings; rows): ($headings | split("|")) as $h | [rows] |
    if . == [] then empty else
        "<div class=\"scroll\(if length > 16 then " table-box" else "" end)\" tabindex=\"0\">" +
            "<table><thead><tr>\($h | map(html_heading) | join(""))</tr></thead><tbody>",
        (.[] | "<tr>" + ([., [range(length)]] | transpose |
            map(.[1] as $i | .[0] | html_cell($h[$i] | startswith("#"))) | join("")) + "</tr>"),
        "</tbody></table></div>"
    end;

# The rows of the page's tables, cells as report/html takes them.
def count(f): map(select(f)) | length;
def tile: if . == null then null else "m=\(.m) n=\(.n) warps=\(.warps) vec=\(.vec) stages=\(.stages)" end;
def shape: "\(.batch),\(.heads),\(.seq_q // .seq),\(.dim)";
def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor]
    else (.[length / 2 - 1] + .[length / 2]) / 2 end;

def ladder_rows: sort_by([(.problem | work), -(.p50_us // 0)]) | .[] |
    [.problem, .version // .kernel, (.config | tile), (.p50_us | figure), (.p50_ci95 | between), (.p90_us | figure),
        (.tflops | figure), .vs, (.ratio | decimals(2)), (.ci95 | ratio_between)];
def best_rows: .[] | [(.p50_us | figure), (.p90_us | figure), .kernel, (.knobs | gsub(","; " ")), (.registers | whole),
    (.smem_bytes | whole)];
def paired_best: (.paired // {}) | to_entries | min_by(.value.ratio);
# The peers of rows of by_peer, [[key, name]]; a name has the version where a row has it.
def peers_there:
    def torch($of): [.[].torch | strings | capture("\($of) (?<v>[0-9][^ ,]*)").v] | unique;
    def cudnn: tonumber | "\(. / 10000 | floor).\(. / 100 % 100).\(. % 100)";
    . as $rows | [["fa2", "FlashAttention 2", []], ["cudnn", "cuDNN", (torch("cudnn") | map(cudnn))],
        ["fa3", "FlashAttention 3", []], ["fa3_scaled", "FlashAttention 3 (scaled)", []],
        ["fa4", "FlashAttention 4", torch("flash_attn_4")],
        ["flashinfer_fa2", "FlashInfer fa2", []], ["flashinfer_fa3", "FlashInfer fa3", []]] |
    map(.[0] as $key | select(any($rows[]; .peers[$key])) |
        ([$rows[].libraries[$key]?.version | values] | unique) as $library |
        [$key, ([.[1]] + if $library == [] then .[2] else $library end | join(" "))]);

# A peer of them by its name and version.
def named($there): . as $key | first($there[] | select(.[0] == $key)[1]) // .;
def peer_rows: peers_there as $there | .[] | paired_best as $p | [shape, mask, .variant // .kernel, (.us | figure),
    (.tflops | figure), (.best_peer | named($there)), (.peers[.best_peer // ""] | figure),
    (if .ratio then .ratio | decimals(2) else .status end),
    ($p.key | named($there)), ($p.value.ratio | decimals(2)), ($p.value.ci95 | ratio_between)];
def versus_rows: .[] | [name, .pace, .variant // .kernel, (.solo_us | figure), (.tflops | figure),
    (.sm_clock_mhz | whole), (.percent_of_peak | decimals(1)), (.p50_us | figure), .vs_version // .vs,
    (.vs_p50_us | figure), (if .ratio then .ratio | decimals(2) else .status end), (.ci95 | ratio_between)];
# Per kernel, pace and peer; of several peers also over the fastest on each shape.
def fastest_peer: group_by(.problem) | map(min_by(.ratio) | .best = true);
def pace_rows: map(select(.ratio)) | group_by([.kernel, .pace])[] |
    (group_by(.vs_version // .vs)[], (select(map(.vs) | unique | length > 1) | fastest_peer)) |
    [.[0].kernel, .[0].pace, (if .[0].best then "the fastest measured" else .[0] | .vs_version // .vs end),
    (length | whole), (map(.ratio) | (mean, min, max) | decimals(2)), (count(.ratio > 1) | whole)];
def parity_rows: group_by(.kernel)[] | [.[0].kernel, (count(.verdict == "PASS") | whole),
    (count(.verdict == "FAIL") | whole), (count(.verdict == "NOT-RUN") | whole),
    (map(.max_abs_difference_to_torch // 0) | max | figure), (map(.max_abs_err // 0) | max | figure)];
def rate_rows: .[] | [.kernel, (.group | split("|")[2]), .strategy, (.candidates | whole),
    (.status | to_entries | map("\(.key) \(.value)") | join(", ")), (.measured | whole), (.compiled_cold | whole),
    (.seconds | figure), (.per_second | figure), (.per_second * 60 | whole)];
def stage_rows: .[] | [.kernel, (.compile | decimals(3)),
    (.stages | (.start, .check, .timing, .recheck, .turn) | decimals(3))];
# Of several records of one problem the last.
def serving_rows: group_by(.problem) | sort_by(.[-1].problem | .seq_kv * .batch) | .[] | last |
    [(.problem | shape), (.problem.kv_heads | whole), (.problem.seq_kv | whole), (.problem | mask),
    .variant // .kernel, (.config | tile), (.timing.p50_us | figure), (.timing.p50_ci95_us | between),
    (.throughput.tflops | figure), (.throughput.gbytes_per_s | figure)];
def bound_kernel_rows: group_by(.kernel)[] | [.[0].kernel, (length | whole),
    (map(.percent_of_bound | values) | (min, median, max) | figure), (count(.us < .bound_us) | whole),
    (group_by(.binds) | sort_by(-length) | map("\(.[0].binds) \(length)") | join(", "))];
# Points of the bound that the ladder gave: the fastest of each kernel on each problem.
def rungs: map(select((.file // "" | startswith("ladder")) and .pipe_clocks)) | group_by([.kernel, .problem]) |
    map(min_by(.us));
def pipe_rows: rungs | sort_by((.problem | work), .us) | .[] | (.mhz // .clock_mhz_max) as $mhz |
    [.kernel, .problem, (.us | figure), (.bound_us | figure),
        (.pipe_clocks | (.tensor, .mufu, .fma, .alu, .shared, .issue, .l2) / $mhz | figure), .binds];
def bound_rows: group_by([.kernel, .problem]) | map(min_by(.us)) | sort_by(-.percent_of_bound) | .[] |
    [.kernel, .problem, (.options | [scan("--(m|n|warps|stages) ([0-9]+)") | join("=")] | join(" ")),
        (.us | figure), (.bound_us | figure), (.percent_of_bound | figure), .binds];
def counted_rows: .kernels[] | [.kernel, (.passed | whole),
    (.failed | whole | if .v > 0 then .class = "FAIL" else . end), (.skipped | whole), (.not_run | whole)];

# Rows of the ladder: the kernels with a time, the slowest first.
def climbed: map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | min) | map(.[0].kernel);

# Of leaderboard.json, the group of the canonical problem; the first group where it was not swept.
def canonical: map(select(.group | endswith("|2,8,8,512,512,64,full|fp32")))[0] // .[0];

# Lines of evidence_current.sh --rows of $file as the sentence above a table.
def currency:
    map(select(.claims)) | map(select(.current | not)) as $stale |
    "Machine code equals today's: \(length - ($stale | length)) of \(length) rows (`\($file)`)" +
    if $stale == [] then "." else "; left out: " + ([group_by(.kernel)[] |
        map(select(.current | not)) as $old | select($old != []) |
        "`\(.[0].kernel)` \($old | length) of \(length)"] | join(", ")) + "." end;

# The same lines as the names of the rows that are left out.
def stale:
    map(select(.claims and (.current | not)) | .row // {}) | map(. as $row | (.problem // $row) |
        "\($row.variant // $row.kernel // "?") on " + if type == "string" then . else "\(shape) \(mask)" end) |
    group_by(.) | map(.[0] + if length > 1 then " (\(length))" else "" end) |
    .[:24] + if length > 24 then ["and \(length - 24) more"] else [] end | join("; ") | @html;

# The registry as the rows of the table of kernels.
def kernels:
    .[] | select(.variant_of == null) |
    (if .defaults then .defaults | tile else "library" end) as $tile |
    (if .kind == "library" then "library" elif .arch_specific then "sm_\(.min_arch)a"
        else "sm_\(.min_arch) and later" end) as $arch |
    "| `\(.name)`\(if .default then " (default)" else "" end) | \(.idea) | \($tile) | \(.tensor_cores) | \($arch) | " +
    "\(if .emulated then "yes" else "no" end) |";

# Rows of ladder/table as a table of the documents. $file: where their records are.
def ladder:
    map(select(.p50_us != null)) |
    (map(.problem) | unique_by(work)) as $problems | (map(.kernel) | unique) as $kernels |
    . as $all |
    "p50 in us, TFLOP/s, and times as fast as the kernel named under \"over\" (by `--vs`), each kernel at its own best",
    "tile; full attention, B,H,S,D (-: not measured); records in `\($file)`.", "",
    (["kernel", "over"] + $problems | row), "|---|---|\($problems | map("---") | join("|"))|",
    ([$kernels[] as $k | {k: $k, cells: [$problems[] as $p | [$all[] | select(.kernel == $k and .problem == $p)][0]]}] |
        sort_by(-(.cells | map(.p50_us // 0) | first)) | .[] |
        [([(.k | code)] + (.cells | map(.version // empty) | unique) | join(" ")),
            (.cells | map(.vs // empty) | names)] + (.cells | map(
            if . then "\(.p50_us | short) (\(.tflops | short))" + if .ratio then ", \(.ratio | short)x" else "" end
            else "-" end)) | row);

# Rows of scripts/peers.sh on dense problems as a table of the documents. $file: its name. Shapes of a kind (decode,
# prefill) are groups of their own. A mean over fewer shapes than its row has says over how many.
def peers:
    map(by_peer | select(.ratio != null)) |
    (if all(.[]; .peers.fa3) then "fa3_scaled" else "fa3" end) as $other | # measured everywhere, or scaled
    (peers_there | if map(.[0]) | index("fa3") and index("fa3_scaled") then map(select(.[0] != $other)) else . end)
        as $columns |
    map(.paired_ratio | values) as $paired | ($paired != []) as $is_paired |
    "\(map(.kernel) | names)\(.[0] | typed | ascii_upcase): best peer / ours (above 1: ours is faster), " +
    "geometric mean \(map(.ratio) | mean | hundredths) over \(length) shapes; every shape in `\($file)`.",
    (if $is_paired then "solo: each timed alone, power-limited; paired: ABBA in one process, " +
        "geometric mean of the least ratio \($paired | mean | hundredths) over \($paired | length) shapes."
        else empty end),
    "",
    (["head dim", "mask", "shapes"] + ($columns | map("over \(.[1])")) + ["over the best"] +
        if $is_paired then ["over the best, paired"] else [] end | row),
    "|" + "---|" * (4 + ($columns | length)) + if $is_paired then "---|" else "" end,
    (group_by([.dim, .kind, .causal]) | .[] | . as $rows | length as $n |
        [(.[0] | "\(.dim)" + if .kind then ", \(.kind)" else "" end), (.[0] | mask), $n] +
        ($columns | map(.[0] as $p | [$rows[] | select(.peers[$p] != null) | .peers[$p] / .us] | mean_of($n))) +
        [map(.ratio) | mean_of($n)] +
        if $is_paired then [map(.paired_ratio | values) | mean_of($n)] else [] end | map(tostring) | row);

# Rows of pairs as the README's table, of the kernel that has most of them: head dims and masks of two shapes and
# more. A mean over fewer shapes than its row has says over how many. $folder: where they lie, named for the GPU.
# $fa4: rows of scripts/peers.sh beside them, for FlashAttention 4.
def summary:
    def peer: .vs_version // .vs;
    ($fa4 | map(by_peer)) as $fa4 |
    def fa4: if $fa4 == [] then [] else (map(.problem | {batch, heads, seq: .seq_q}) | unique) as $shapes |
        .[0].problem as {$dim, $causal} | [[$fa4[] | select(.dim == $dim and .causal == $causal and
            ({batch, heads, seq} as $s | $shapes | index([$s]))).paired.fa4.ratio | values] |
            mean_of($shapes | length)] end;
    main_kernel | . as $all |
    (group_by(peer) | sort_by(-length) | [.[][0] | peer as $p | ("sustained", "rested") as $pace |
        select(any($all[]; peer == $p and .pace == $pace)) | {peer: $p, $pace}]) as $columns |
    "\([.[0].kernel | values] | names) on an \($folder | ascii_upcase), times as fast in pairs (`--vs`), " +
        "geometric means: above 1 ours is faster.",
    "Rested: each launch after a pause, the L2 cold. In brackets: over so many of the shapes.", "",
    (["head dim", "mask", "shapes"] + ($columns | map(.peer + if .pace == "rested" then ", rested" else "" end)) +
        ($fa4 | if . == [] then [] else [peers_there[] | select(.[0] == "fa4")[1]] end) | row),
    "|" + "---|" * (3 + ($columns | length) + if $fa4 == [] then 0 else 1 end),
    (group_by([.problem.dim, .problem.causal])[] | . as $rows | (map(.problem) | unique | length) as $n |
        select($n > 1) |
        [.[0].problem.dim, (.[0].problem | mask), $n] +
        [$columns[] as $c | [$rows[] | select(peer == $c.peer and .pace == $c.pace).ratio] | mean_of($n)] + fa4 |
        map(tostring) | row);

# Beyond dense forward: a line for each problem (with -s). $file: theirs.
def features:
    def brief: gsub("(?<l>[0-9]+)(,\\k<l>){3,}"; "\(.l),...") |
        gsub("--lengths (?<l>[0-9,:]{40,})"; "--lengths (\(.l / "," | length) sequences)");
    def cell: if . == null then "-" elif .ratio then .ratio | thousandths elif .status == "wrong" then "wrong"
        else "not run" end;
    ([.[].peers[] | select(.version) | .version] | unique | join(",\n")) as $versions |
    ([.[].peers[].peer] | unique) as $peers |
    "Times as fast as each peer, in pairs on \(map(.device.name) | unique | join(", ")), each proven first. Peers:",
    "\($versions).", "Every row in `\($file)`, with why a peer did not run.", "",
    (["problem (options)", "kernel and tile", "TFLOP/s of visible pairs"] + ($peers | map("over \(.)")) | row),
    "|\("---|" * (3 + ($peers | length)))",
    (.[] | . as $row |
        [(.options | brief | code), "\(.variant // .kernel) \(.config | "\(.m)x\(.n)")",
            (.tflops | values | short) // "-"] +
        ($peers | map(. as $peer | first($row.peers[] | select(.peer == $peer)) // null | cell)) | row);

# Rows of pairs as a table of the documents. $file: where their records are. "over the best" counts the shapes that
# every peer was measured on; a cell over fewer shapes than the row has says over how many.
def versus:
    def cell($n): if . == [] then "-" else "\(mean | hundredths) (\(min | hundredths))" +
        if length == $n then "" else ", \(length) shapes" end end;
    def peer: .vs_version // .vs;
    map(select(.ratio)) as $timed | ($timed | map(peer) | unique) as $peers |
    "By `--vs`, ABBA in one process: times as fast, geometric mean and in brackets the least. sustained: back to back;",
    "rested: each launch after a pause, the L2 cold.", "Every shape in `\($file)`.", "",
    (["kernel", "pace", "head dim", "mask", "shapes"] + ($peers | map("over \(.)")) +
        ["over the best", "ahead"] | row),
    "|\("---|" * (7 + ($peers | length)))",
    ($timed | group_by([.kernel, .pace, .problem.dim, .problem.causal]) | .[] |
        group_by(.problem) as $shapes | ($shapes | length) as $n |
        ($shapes | map(select(length == ($peers | length)) | map(.ratio) | min)) as $best |
        [(.[0].kernel | code), .[0].pace, .[0].problem.dim, (.[0].problem | mask), $n] +
        [$peers[] as $peer | map(select(peer == $peer).ratio) | cell($n)] +
        [($best | cell($n), if . == [] then "-" else "\(map(select(. >= 1)) | length) of \(length)" end)] |
        map(tostring) | row),
    (map(select(.ratio == null)) | .[] | "| `\(.kernel)` | \(.pace) | " +
        "\(.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim) \(mask)"): \(.status) |" + " |" * (4 + ($peers | length)));

# leaderboard.json as a table of the documents. $today: its rows that are of today's machine code. $sweeps: the lines of
# sweeps.jsonl; $folder: where they lie.
def sweep:
    "The best tile of each kernel on \(.[0].group | split("|")[0]) by `scripts/evo_sweep.sh`, each in its own space;",
    "log and leaderboard in `\($folder)/`. Problems are B,H,Hkv,S,Skv,D.", "",
    "| problem | kernel | tile | p50 us | registers | shared bytes | candidates | a second |",
    "|---|---|---|---|---|---|---|---|",
    (canonical as $first | [$first] + (. - [$first]) | .[] | . as $g | (.kernels | to_entries |
        sort_by(-(.value.p50_us // 0)) | .[]) | .key as $k | .value as $v | select(any($today[]; . == $v)) |
        ([$sweeps[] | select(.kernel == $k and .group == $g.group and .measured > 0)] | last) as $s |
        [($g.group | split("|")[2] | gsub(",(?=[a-z])"; " ")), ($k | code) + if $g.leader == $k then " (leads)"
            elif $v.p50_us < $g.kernels[$g.leader].p50_us? then " (not paired with the leader)" else "" end,
            ($v.knobs | gsub(","; " ")), ($v.p50_us | hundredths), $v.registers // "-", $v.smem_bytes // "-",
            "\($s.candidates // "-")\(if $s.space then " of \($s.space)" else "" end)", $s.per_second // "-"] |
        map(tostring) | row);

# Summaries of what was tried against the bench, as tables of the documents. $explained: tests/sanitize_explained.tsv.
# $there: how many wrong kernels (cuda, emu) and cheats there are today, where that is known.
def robustness:
    def of($what): map(select(.what == $what));
    def word($v): map(.verdict) | if index($v.bad) then "bad" elif index($v.good) then "good" else "not run" end;
    def tally($v): group_by(.name) | map({name: .[0].name, is: word($v),
        count: (map(select(.verdict == $v.good) | .count // 1) | max // 0)});
    def not_run: map(select(.is == "not run").name) | if length > 0 then "; not run: " + join(", ") else "" end;
    def share: "\(map(select(.is == "good")) | length) of \(map(select(.is != "not run")) | length)";
    # When a row's summaries were made, and at which commit; of the older ones the date alone is known.
    def made: map(.made | if . then [.date, .git // empty] | join(", ") else "not dated" end) | unique | join("; ");
    def row_of($what; f): of($what) | if length == 0 then empty else made as $made | f | . + [$made] | row end;
    def total(f): map(f) | add // 0;
    def mutants: (map(.known) | add // 0) as $known | "\(map(.kernels[] | "`\(.kernel)` \(.caught) of \(.of)") |
        join(", "))\(if $known > total(.caught + .missed) then ", a sample of \($known)" else "" end); " +
        "`tests/emu/\(.[0].what).sh`";
    def of_kernels(f): total(.kernels | map(f) | add);
    def caught: "\(total(.caught)) of \(total(.caught + .missed)) caught";
    def clean: "\(of_kernels(.passed)) of \(of_kernels(.passed + .failed))";
    def gpus: map(.gpu) | unique | join(", ");
    def since($tried; $now): if ($now // $tried) != $tried then "; today's set has \($now)" else "" end;
    def killed: map(select(.name | startswith("kill_")).count) | add // 0;
    def explained: $explained | split("\n") | map(select(length > 0 and (startswith("#") | not)) | split("\t") |
        {("\(.[0]) \(.[1])"): .[2]}) | add // {};

    "| what | result | how | made |", "|---|---|---|---|",
    row_of("controls"; ["negative controls (`tests/emu/controls.cu`): kernels wrong in one way", caught,
        "\(total(.runs)) runs, each with its class and line; `tests/emu/controls.sh`"]),
    row_of("mutants"; ["mutants: a barrier or wait fewer in a built-in kernel", caught, mutants]),
    row_of("hopper_mutants"; ["mutants of the Hopper kernels: wrong in one way, on the emulator", caught, mutants]),
    (of("wrong")[] | ["wrong kernels on \(.gpu // "the emulator"): one fault each",
        "\(.gate) of \(.kernels) caught by the gate",
        (if .ordinary == null then "the gate alone" else "\(.ordinary) by an ordinary run" end) +
            "\(since(.kernels; $there[.device])); " +
            "`tests/wrong/run.sh\(if .device == "cuda" then " --gpu" else "" end)`", ([.] | made)] | row),
    row_of("judge_mutants"; ["mutants of the judge: a token changed in a pure module",
        "\(total(.killed)) of \(total(.killed + .survived)) killed by unit tests",
        "seed \(map(.seed) | join(", ")); besides \(total(.equivalent)) that change nothing, each with its reason; " +
        "`tests/mutate.py`"]),
    row_of("race_controls"; ["controls of the race detector (`tests/emu/race`): kernels with a race, and without",
        "\(total(.missed | length)) of \(total(.racy)) missed, \(total(.accused | length)) of \(total(.clean)) accused",
        "\(total(.runs)) runs, under every schedule; `tests/emu/race.sh`"]),
    row_of("race"; ["problem matrix under the race detector", "\(clean) clean",
        "\(map(.kernels[].kernel) | unique | length) kernels; `scripts/ci_gate.sh --race`"]),
    row_of("conform"; ["primitives, emulator beside \(gpus)",
        "\(total(.passed)) of \(total(.passed + .failed)) files give the same words",
        "`tests/emu/conform`; `scripts/ci_gate.sh`"]),
    row_of("sanitize"; ["compute-sanitizer on \(gpus)", "\(clean) runs clean",
        (map(.tools[] | "\(.tool) \(.passed) of \(.passed + .failed)") | join(", ")) +
        (of_kernels(.not_run // 0) | if . > 0 then "; \(.) not run" else "" end) +
        "; `scripts/ci_gate.sh --sanitize`"]),
    row_of("cheats"; (map(.device) | unique | join(", ")) as $devices | [.[].cheats[]] |
        tally({good: "CAUGHT", bad: "MISSED"}) |
        ["cheats (`tests/cheats`)", "\(share) caught",
            "`tests/cheats/run.sh` on \($devices)\(not_run)\(since(length; $there.cheats))"]),
    row_of("faults"; [.[].faults[]] | tally({good: "SURVIVED", bad: "FAILED"}) |
        ["faults", "\(map(.count) | add) survived, \(share) kinds",
            "`tests/faults/run.sh`, \(killed) of them `kill -9`\(not_run)"]),
    row_of("asan"; ["the driver under ASan, UBSan, LeakSanitizer",
        "\(total(.passed)) tests passed, \(total(.failed)) failed",
        "suites \(map(.suites) | join(", ")); `tests/asan.sh`"]),
    row_of("fuzz"; [.[].targets[] | select(.verdict != "NOT-RUN")] | ["fuzz executions",
        "\(map(.executions) | add), \(map(select(.verdict == "FAIL")) | length) findings",
        "\(map("\(.name) \(.executions)") | join(", ")); `make fuzz`"]),

    # What a tool found (exit 9); not what cannot run there.
    (of("sanitize") | map(.not_passed[]? | select(.verdict == "failed" or (.code // 9) == 9)) |
        if length == 0 then empty else
            "", "What compute-sanitizer reports, and how far that is ours:", "",
            "| kernel | tool | runs | |", "|---|---|---|---|",
            (group_by([.kernel, .tool, .verdict])[] | (.[0].verdict == "skipped") as $skipped |
                [(.[0].kernel | code), .[0].tool, "\(length)\(if $skipped then ", not counted" else "" end)",
                (explained["\(.[0].kernel) \(.[0].tool)"] // if $skipped then .[0].why else "not explained" end)] | row)
        end),
    (of("mutants") | map(.survivors[]) |
        if length == 0 then empty else
            "", "Mutants that survive, and why they may:", "",
            "| kernel | what is taken out | why nothing is wrong, or nothing sees it |", "|---|---|---|",
            (group_by([.file, .function, .statement, .number])[] |
                [(map(.kernel) | names), "`\(.[0].statement)` in `\(.[0].function)` (\(.[0].file))", .[0].why] | row)
        end);

# Values of the folder's files, slurped: where, with what and when they were measured, as a list of facts.
def environment:
    def all_of(f): [.. | objects | f // empty | strings] | unique;
    def fact($name; $values): $values | map(select(. != "")) |
        if . == [] then empty else "<dt>\($name)</dt><dd>\(map(@html) | join("; "))</dd>" end;
    # Of texts, those that do not begin a longer one.
    def longest: . as $all | map(select(. as $t | any($all[]; . != $t and startswith($t)) | not));
    def gigabytes: . / 1e9 | round;
    ([.. | objects | select(has("sm_count") and has("name"))] | unique_by(.name)) as $devices |
    all_of(.time) as $times |
    (all_of(.torch) | map(if test("^[0-9]") then "torch \(.)" else . end)) as $torch |
    "<dl class=\"facts\">",
    fact("GPU"; $devices | map("\(.name), \(.arch), \(.sm_count) SMs, up to \(.clock_mhz_max // "?") MHz" +
        "\(if .memory_bytes then ", \(.memory_bytes | gigabytes) GB" else "" end)" +
        "\(if .memory_gbytes_per_s then " at \(.memory_gbytes_per_s | round) GB/s" else "" end)")),
    fact("Driver"; all_of(.driver)), fact("Compilers"; all_of(.compiler)),
    fact("Libraries"; $torch + all_of(.vs_compiler) | longest),
    fact("Machine code, of today's"; $said | split("\n")),
    fact("Measured"; if $times == [] then [] else
        [$times | map(.[:10]) | if .[0] == .[-1] then .[0] else "\(.[0]) to \(.[-1])" end] end),
    "</dl>";

# Of records: the roofs of the fastest device, {peak, gbytes}; nothing without one.
def roofs:
    map(select(.throughput.peak_boost_tflops != null) |
        {peak: .throughput.peak_boost_tflops, gbytes: .device.memory_gbytes_per_s}) | max_by(.peak) // empty;

# Of rows of pairs, the ratio over the fastest peer on each shape of the main kernel.
def over_the_best($pace): main_kernel | map(select(.pace == $pace)) | group_by(.problem) | map(map(.ratio) | min);

# What a card can be compared by with another: the same kernel, or version of a library, on the same problem.
def card_values($ladder; $versus; $serving; $sweeps):
    ($ladder | map(select(.tflops != null) |
        {what: "ladder, TFLOP/s", key: [.version // .kernel, .problem], v: .tflops})) +
    (["sustained", "rested"] | map(. as $pace | $versus | main_kernel | map(select(.pace == $pace)) |
        group_by(.problem) | map(min_by(.ratio) |
            {what: "over the fastest library, \($pace)", key: [.kernel, .problem], v: .ratio})) | add) +
    ($serving | map(select(.throughput.gbytes_per_s != null) |
        {what: "serving, GB/s", key: [.kernel, .problem], v: .throughput.gbytes_per_s})) +
    ($sweeps | map(select(.per_second != null) | {what: "sweeps, candidates a second",
        key: [.kernel, .strategy, (.group | split("|")[2])], v: .per_second})) |
    group_by([.what, .key]) | map(last);
# Lines of {folder, values}: each pair of folders by what they share.
def side_by_side:
    . as $all | [range(length) as $a | range($a + 1; length) as $b | [$all[$a, $b]] | . as [$one, $other] |
        ($other.values | map({("\(.what)\(.key)"): .v}) | add // {}) as $there |
        $one.values | map(. + {over: (.v / ($there["\(.what)\(.key)"] // empty))}) | group_by(.what)[] |
        {what: .[0].what, cards: "\($one.folder) over \($other.folder)", n: length,
            mean: (map(.over) | mean), least: (map(.over) | min), most: (map(.over) | max)}];

# The summary: a card per finding. Each variable is a list with one file's contents, or empty: $ladder, $versus, $gate,
# $sanitize, $parity, $bound, $sweeps; $peak: the tensor peak in TFLOP/s or null.
def cards:
    def card($id; $number; $says): "<a class=\"card\" href=\"#\($id)\"><b>\($number | @html)</b>\($says | @html)</a>";
    def total(f): map(f // 0) | add // 0;
    def passed: total(.passed) as $p | "\($p) of \($p + total(.failed))";

    "<div class=\"cards\">",
    ($ladder[0] // [] | map(select(.tflops != null and .config != null)) | max_by(.tflops) | select(.) |
        card("ladder"; "\(.tflops | rounded) TFLOP/s";
            "the fastest kernel, \(.kernel), on \(.problem)" +
                if $peak then ": \(100 * .tflops / $peak | round) % of the tensor cores' peak" else "" end)),
    (["sustained", "back to back"], ["rested", "each launch after a pause"] | . as [$pace, $words] |
        $versus[0] // [] | over_the_best($pace) | select(. != []) |
        card("peers"; "\(mean | fixed(2))x"; "as fast as the fastest library, \($words), in pairs: the geometric " +
            "mean of \(length) shapes; ahead on \(count(. > 1)), least \(min | fixed(2))x")),
    ($gate[0].kernels // [] | select(. != []) | card("correct"; passed;
        "cases right: the problem matrix against attention in FP64; " +
            "\(total(.skipped)) skipped, which a kernel does not offer")),
    ($sanitize[0].kernels // [] | select(. != []) |
        card("correct"; passed; "runs clean under compute-sanitizer's four tools")),
    ($parity[0] // [] | select(. != []) | count(.verdict == "PASS") as $p | count(.verdict == "FAIL") as $f |
        card("parity"; "\($p) of \($p + $f)"; "results agree with PyTorch's on the same inputs")),
    ($bound[0] // empty | card("bounds"; "\(.percent_of_bound.median | round) %";
        "of the machine code's bound at the median of \(.points) runs; " +
            "\(.below_bound | length) ran faster than the bound allows")),
    ($sweeps | map(.per_second | values) | select(. != []) |
        card("sweep"; "\(max | rounded) a second"; "candidates compiled, checked and timed, in the fastest sweep")),
    "</div>";

# A list of results of scripts/ncu_profile.sh as one table: a row per run, a column per gate.
def gates:
    def gate_cell: if . == null or .measured == null or .applies == false then null else
        (.measured | if . == floor then tostring else rounded end) as $t |
        {v: .measured, t: (if .verdict == "FAIL" then "\u2717 " + $t else $t end),
            class: (if .verdict == "FAIL" then "advice" else .verdict end)} end;
    def unit: if (.unit // "") == "" then "" else " (\(.unit))" end;
    def gate_rows($names): .[] |
        [.variant // .kernel,
            (.problem | if . then "\(shape)\(if .causal then " causal" else "" end)" else null end),
            (.config | tile)] +
        [$names[] as $name | first(.gates[] | select(.gate == $name)) // null | gate_cell] +
        [.gates | map(select(.verdict | IN("PASS", "FAIL"))) | "\(count(.verdict == "PASS")) of \(length) met"];

    (map(.gates[]) | unique_by(.gate) | map(.gate)) as $known |
    (.[0].gates | map(.gate)) as $first | ($first + ($known - $first)) as $names |
    (map(.gates[]) | map({(.gate): unit}) | add) as $units |
    html_table("kernel|B,H,S,D|tile|" + ($names | map("#\(.)\($units[.])") | join("|")) + "|gates";
        gate_rows($names));

# leaderboard.jsonl: the mean seconds of each stage, by kernel.
def stages:
    def mean(f): map(f) | add / length;
    [inputs | fromjson? | select(.status == "pass" and .stage_s != null and .p50_us != null)] | group_by(.kernel) |
    map({kernel: .[0].kernel, n: length, compile: mean(.compile_s),
        stages: {start: mean(.stage_s.start), check: mean(.stage_s.check), timing: mean(.stage_s.timing),
            recheck: mean(.stage_s.recheck), turn: mean(.stage_s.turn)}});

# A folder's facts for the page of all GPUs, from the same variables as report/cards; $folder: its name. values: what a
# card is compared by with another, [{what, key, v}].
def index:
    def counted: if . == null then null else (map(.passed) | add) as $p | (map(.failed) | add) as $f |
        {v: $p, t: "\($p) of \($p + $f)"} end;
    def best: map(select(.tflops != null and .config != null)) | max_by(.tflops);
    def over($pace): $versus[0] // [] | over_the_best($pace) | if . == [] then null else
        {v: mean, t: "\(mean | fixed(2)) (\(length) shapes)"} end;
    {folder: $folder, peak: $peak, best: ($ladder[0] // [] | best),
        values: card_values($ladder[0] // []; $versus[0] // []; $serving[0] // []; $sweeps),
        climbed: ($ladder[0] // [] | map(select(.tflops != null) | {problem, kernel: (.version // .kernel), tflops})),
        sustained: over("sustained"), rested: over("rested"),
        gate: ($gate[0].kernels | counted), sanitize: ($sanitize[0].kernels | counted),
        bound: $bound[0].percent_of_bound.median, per_second: ($sweeps | map(.per_second | values) | max)};

# Lines of report/index as the tables of the page of all GPUs.
def index_tables:
    def overview: .[] | [(.folder | link("\(.)/report.html")), .best.kernel, .best.problem, (.best.tflops | figure),
        (if .peak and .best then 100 * .best.tflops / .peak | figure else null end), .sustained, .rested,
        .gate, .sanitize, (.bound | figure), (.per_second | figure)];
    def side_rows: side_by_side[] | [.what, .cards, (.n | whole), (.mean, .least, .most | decimals(3))];
    . as $all |
    html_table("GPU|fastest kernel|B,H,S,D|#TFLOP/s|#% of peak|#over the best library, back to back|#rested" +
        "|#right|#clean|#median % of the bound|#candidates a second"; overview),
    "<h2>Card by card</h2>",
    "<p>What both cards have in rows of today's machine code: one over the other, on the same shapes alone.</p>",
    html_table("what|cards|#shapes on both|#ratio, geometric mean|#least|#most"; side_rows),
    "<h2>The ladder, TFLOP/s</h2>",
    html_table("B,H,S,D|kernel|" + (map("#\(.folder)") | join("|"));
        [.[].climbed[] | [.problem, .kernel]] | unique | sort_by(.[0] | work)[] | . as [$problem, $kernel] |
        [$problem, $kernel] +
        [$all[] | first(.climbed[] | select(.problem == $problem and .kernel == $kernel) | .tflops) // null | figure]);

# Lines of {folder, values} as a table of the documents.
def side_by_side_table:
    side_by_side | if . == [] then "No shape was measured on two cards with today's machine code." else
        "One card over another, on the shapes that both have in rows of today's machine code. Least and most: the " +
            "spread.",
        "", "| what | cards | shapes on both | ratio | least | most |", "|---|---|---|---|---|---|",
        (.[] | [.what, .cards, .n, (.mean, .least, .most | thousandths)] | map(tostring) | row) end;
