#!/usr/bin/env bats
# The page, its pictures and the README's tables, from made-up evidence.
load helper

make_evidence() { # DIR
    mkdir -p "$1/ladder/x" "$1/ncu"
    jq -n '[["2,8,512,64", 1], ["4,16,1024,64", 2]] | map(.[0] as $p | .[1] as $f |
        ({scalar: 3, light: 27, wmma: 80, cudnn: 150} | to_entries | map({problem: $p, kernel: .key, config: null,
        p50_us: (1000 / .value), p90_us: (1001 / .value), tflops: (.value * $f), vs: null, ratio: null}))) |
        add' >"$1/ladder.json"
    ./fa_bench --kernel light --compile-only --quiet --json - |
        jq '{kernel, variant, config, ptxas, problem, provenance: {git: "abc", code_sha256: .provenance.code_sha256},
        timing: {p50_ci95_us: [315.25, 318.04]}, throughput: {peak_boost_tflops: 1000},
        device: {name: "NVIDIA Stub", arch: "sm_90", sm_count: 132, memory_gbytes_per_s: 4800}}' \
        >"$1/ladder/x/light.json"
    jq --slurpfile light "$1/ladder/x/light.json" 'map(if .kernel == "light" then . + {variant: .kernel,
        arch: $light[0].ptxas.arch,
        config: $light[0].config, code_sha256: $light[0].provenance.code_sha256, git: "abc"} else . end)' \
        "$1/ladder.json" >"$1/x" && mv "$1/x" "$1/ladder.json"
    jq -nc '["light", "wmma"][] as $k | [16, 32, 64][] as $m | [4, 8][] as $w | {key: "\($k)\($m)\($w)",
        group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", kernel: $k, knobs: "m=\($m),n=64,warps=\($w)",
        status: (if $m == 64 and $w == 4 then "infeasible" else "pass" end), p50_us: (if $m == 64 and
        $w == 4 then null else 10 + $m / $w end), source_sha256: "new"}' >"$1/leaderboard.jsonl"
    jq -nc '{key: "stale", group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", kernel: "light",
        knobs: "m=16,n=64,warps=4", status: "pass", p50_us: 1.5, source_sha256: "old"}' |
        cat - "$1/leaderboard.jsonl" >"$1/x" && mv "$1/x" "$1/leaderboard.jsonl"
    jq -n '[{group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", leader: "wmma",
        kernels: {wmma: {knobs: "m=32,n=64", p50_us: 12.345, registers: 100, smem_bytes: 2048, kernel: "wmma",
        git: "fed", code_sha256: null}}}]' >"$1/leaderboard.json"
    jq -nc '{kernel: "wmma", group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", strategy: "evo", candidates: 40,
        measured: 40, compiled_cold: 38, status: {pass: 40}, seconds: 11.4, per_second: 3.5}' >"$1/sweeps.jsonl"
    jq -n '[{p50_us: 12.345, p90_us: 13, kernel: "wmma", knobs: "m=32", registers: 100, smem_bytes: 2048}]' \
        >"$1/micro_best.json"
    jq -nR -L scripts/lib 'import "peers" as peers; [peers::shapes]' --arg only '' --arg dtype fp16 \
        --rawfile times scripts/lib/peers/h200.tsv scripts/lib/peers/grid.txt >"$1/shapes"
    jq '[.[] | . + {kernel: "wgmma", variant: "wgmma", us: .table.cudnn, tflops: 1, peers: {fa2: (1.5 * .table.cudnn),
        cudnn: .table.cudnn, fa3_scaled: .table.fa3}, best_peer: "cudnn", ratio: 1.25, git: "def",
        code_sha256: null}]' "$1/shapes" >"$1/peers.json"
    jq '[.[] | {batch, heads, kv_heads: (.heads / 2), seq_q: .seq, seq_kv: .seq, dim, causal} as $problem |
        ({sustained: {cudnn: 1.25, fa3: 1.125}, rested: {cudnn: 1.5}} | to_entries[]) as $pace |
        ($pace.value | to_entries[]) | {kernel: "wgmma", variant: "wgmma", $problem, pace: $pace.key, vs: .key,
        vs_version: "\(.key) 9.28", status: "pass", ratio: .value, ci95: [.value, .value], p50_us: 4, solo_us: 4.5,
        vs_p50_us: 5, tflops: 600, sm_clock_mhz: 1755, percent_of_peak: 62.5, git: "9e5", code_sha256: null}]' \
        "$1/shapes" >"$1/versus.json"
    scripts/ncu_profile.sh --import tests/golden/ncu_h200_wmma.csv --record tests/golden/ncu_h200_wmma.record.json \
        --out "$1/ncu" >/dev/null || true
}

# A page, once for the file; a test that begins with it takes a copy.
setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/build/test-cache}
    make_evidence "$BATS_FILE_TMPDIR/ev"
    ! command -v gnuplot >/dev/null || scripts/evidence/report.sh --dir "$BATS_FILE_TMPDIR/ev" >"$BATS_FILE_TMPDIR/said"
}
made() {
    cp -r "$BATS_FILE_TMPDIR/ev" "$work"
}

has() { # TEXT...: on the page
    local text
    for text; do
        grep -qF "$text" "$work/ev/report.html" || { echo "not on the page: $text"; return 1; }
    done
}
needs_gnuplot() { command -v gnuplot >/dev/null || skip "no gnuplot"; }

@test "six pictures, the tables, the gates, each with its record" {
    needs_gnuplot
    made
    python3 -c 'import sys, xml.dom.minidom; [xml.dom.minidom.parse(f) for f in sys.argv[1:]]' "$work"/ev/plots/*.svg
    for name in ladder sweep roofline peers paired paces; do
        grep -q "src=\"plots/$name.svg\"" "$work/ev/report.html"
    done
    [ -z "$(grep NOT-RUN "$work/ev/report.html" | grep -v class=)" ]
    grep -q '>wmma_qk<\|>light<' "$work/ev/plots/ladder.svg"
    grep -q '>12.0<' "$work/ev/plots/sweep.svg"           # m=16, warps=8
    [ -z "$(grep '>1.5<' "$work/ev/plots/sweep.svg")" ]   # an old source's time
    grep -q 'FlashAttention 3' "$work/ev/plots/peers.svg"
    grep -q 'geometric mean 1.25 over 41 shapes; above 1 in 41' "$work/ev/report.html"
    has 'tensor pipe active (%)</button>' '✗ 14.5</td>' \
        '<td>wmma</td><td>2,8,8,512,512,64,full</td><td>evo</td><td class="n" data-v="40">40</td><td>pass 40</td>' \
        '<td class="n" data-v="12.345">12.3</td><td class="n" data-v="13">13.0</td><td>wmma</td><td>m=32</td>' \
        '<b>1.25x</b>as fast as the best library, the geometric mean of 41 shapes' \
        'href="ladder/x/light.json">light</a>' '315.3 to 318.0' 'NVIDIA Stub, sm_90, 132 SMs' \
        '<li><a href="#peers">Peers</a></li>' 'Records: <a href="peers.json">peers.json</a>; commit def.'
}

# bats test_tags=slow
@test "FlashAttention 3 as measured where every shape has its time; a table for other peers" {
    needs_gnuplot
    make_evidence "$work/ev"
    cp "$work/ev/peers.json" "$work/scaled"
    jq 'map(.peers.fa3 = .us)' "$work/scaled" >"$work/ev/peers.json"
    scripts/evidence/report.sh --dir "$work/ev"
    grep -q 'FlashAttention 3<' "$work/ev/plots/peers.svg"
    jq '.[0].peers.fa3 = 1' "$work/scaled" >"$work/ev/peers.json"
    jq '.[:1] | map(.kernel = "light" | .variant = "light" | .us = 77.25)' "$work/scaled" >"$work/ev/peers_light.json"
    scripts/evidence/report.sh --dir "$work/ev"
    grep -q 'FlashAttention 3 (scaled)<' "$work/ev/plots/peers.svg"
    has '<td class="n" data-v="77.25">77.3</td>'
}

@test "peers at both paces: every peer and the fastest of them; without a rested pair the command that measures it" {
    needs_gnuplot
    made
    has '<section id="paces"><h2>Peers at both paces</h2>' 'From <a href="versus.json">versus.json</a>' \
        '<td>wgmma</td><td>rested</td><td>cudnn 9.28</td><td class="n" data-v="41">41</td>' \
        '<td>sustained</td><td>the fastest measured</td><td class="n" data-v="41">41</td><td class="n" data-v="1.125' \
        '<td>1,32/16,4096,128 causal</td><td>rested</td><td>wgmma</td>' '<td class="n" data-v="62.5">62.5</td>' \
        'Records: <a href="versus.json">versus.json</a>; commit 9e5.'
    grep -q '>rested: after a pause, L2 cold<' "$work/ev/plots/paces.svg"
    [ -z "$(grep 'measured rested yet' "$work/ev/report.html")" ]
    jq 'map(select(.pace != "rested"))' "$work/ev/versus.json" >"$work/x"
    mv "$work/x" "$work/ev/versus.json"
    scripts/evidence/report.sh --dir "$work/ev"
    has 'No pair was measured rested yet:' '<code>scripts/evidence/evidence.sh versus</code> on a GPU' \
        'src="plots/paces.svg"'
}

@test "the same page from the same evidence; what is torn is left out" {
    needs_gnuplot
    made
    (cd "$work/ev" && sha256sum report.html plots/*) >"$work/sums"
    printf '{"key": "to' >>"$work/ev/leaderboard.jsonl"
    scripts/evidence/report.sh --dir "$work/ev"
    (cd "$work/ev" && sha256sum --quiet -c "$work/sums")
    [ -z "$(grep NOT-RUN "$work/ev/report.html" | grep missing)" ]
}

@test "what is missing is NOT-RUN on the page" {
    needs_gnuplot
    mkdir "$work/ev"
    run scripts/evidence/report.sh --dir "$work/ev"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'class="missing">NOT-RUN' "$work/ev/report.html")" -eq 6 ]
}

@test "no gnuplot is NOT-RUN; bad arguments are refused; --dry-run writes nothing" {
    mkdir -p "$work/bin" "$work/ev"
    for tool in bash dirname jq env; do ln -s "$(command -v "$tool")" "$work/bin/"; done
    run env PATH="$work/bin" scripts/evidence/report.sh --dir "$work/ev"
    [ "$status" -eq 4 ]
    [[ $output == *"NOT-RUN: no gnuplot"* ]]
    refused 2 "no folder" scripts/evidence/report.sh --dir "$work/none"
    refused 2 "unknown option" scripts/evidence/report.sh --fast
    scripts/evidence/report.sh --dir "$work/ev" --dry-run | grep -q 'peers.json: missing'
    [ -z "$(ls "$work/ev")" ]
}

@test "bounds and several GPUs: a picture, a row per point, a page of all" {
    needs_gnuplot
    mkdir -p "$work/ev"
    jq -n '{points: 2, percent_of_bound: {median: 60}, below_bound: []}' >"$work/ev/bound.json"
    jq -nc '{kernel: ("wmma", "mma"), us: 10, bound_us: 6, problem: "2,8,512,64", options: "--m 32 --n 64",
        percent_of_bound: 60, binds: "tensor", file: "ladder/2x8x512x64/x.json", mhz: 1000, pipe_clocks: {tensor: 6000,
        mufu: 1, fma: 2, alu: 3, shared: 4, issue: 5, l2: 6}}' | gzip >"$work/ev/bound.json.points.jsonl.gz"
    mkdir "$work/other"
    run scripts/evidence/report.sh --dir "$work/ev" --dir "$work/other/"
    [ "$status" -eq 0 ]
    has 'src="plots/bound.svg"' 'src="plots/pipes.svg"' '<td>m=32 n=64</td>' '<td>tensor 1</td>' '<b>60 %</b>'
    grep -q '>tensor us<' "$work/ev/report.html"
    grep -qF '<a href="ev/report.html">ev</a>' "$work/index.html"
    grep -qF '<a href="other/report.html">other</a>' "$work/index.html"
}

# bats test_tags=slow
@test "pages in Chromium, three widths, light and dark: nothing wider than the window, no error, no lost link" {
    needs_gnuplot
    command -v chromium >/dev/null || skip "no chromium"
    cp -r evidence/h200 "$work/h200"
    cp -r evidence/h200 "$work/other"
    rm -r "$work/other/peers.json" "$work/other/ncu"
    scripts/evidence/report.sh --dir "$work/h200" --dir "$work/other"
    run tests/browse.py "$work/h200/report.html" "$work/other/report.html" "$work/index.html"
    echo "$output"
    [ "$status" -eq 0 ]
    # It sees what is wrong.
    sed 's|<h2>Summary</h2>|&<p style="width: 2000px">x</p><a href="gone.json">gone</a><script>nothing()</script>|' \
        "$work/h200/report.html" >"$work/h200/wrong.html"
    run tests/browse.py "$work/h200/wrong.html"
    [ "$status" -eq 1 ]
    [[ $output == *"390 light: "*" pixels wider than the window"* && $output == *"1600 dark: error: "* ]]
    [[ $output == *"no such file: $work/h200/gone.json"* ]]
}

# bats test_tags=slow
@test "README tables come from evidence, say so while there is none, and --check sees an edit" {
    mkdir -p "$work/tree/evidence" "$work/tree/docs"
    cp README.md "$work/tree/"
    cp docs/kernels.md "$work/tree/docs/"
    cp evidence/README.md "$work/tree/evidence/"
    cp -r scripts "$work/tree/"
    export FA_BENCH=$PWD/fa_bench
    "$work/tree/scripts/evidence/report.sh" --readme
    grep -q 'No ladder.json under evidence/ yet' "$work/tree/evidence/README.md"
    grep -q 'No versus.json under evidence/ yet' "$work/tree/README.md"
    "$work/tree/scripts/evidence/report.sh" --check
    make_evidence "$work/tree/evidence/stub"
    run "$work/tree/scripts/evidence/report.sh" --check
    [ "$status" -eq 1 ]
    "$work/tree/scripts/evidence/report.sh" --readme
    "$work/tree/scripts/evidence/report.sh" --check
    # A row that is not current any more, of a table that says that all are.
    cp "$work/tree/evidence/stub/ladder.json" "$work/ladder.json"
    jq 'map(if .kernel == "light" then .code_sha256 = "other" else . end)' "$work/ladder.json" \
        >"$work/tree/evidence/stub/ladder.json"
    run "$work/tree/scripts/evidence/report.sh" --check
    [ "$status" -eq 1 ]
    cp "$work/ladder.json" "$work/tree/evidence/stub/ladder.json"
    grep -qF '| `light` |  | 37 (27) | 37 (54) |' "$work/tree/evidence/README.md"
    grep -qF 'geometric mean 1.25 over 41 shapes' "$work/tree/evidence/README.md"
    grep -qE '^\| 128 \| causal \| 7 \| [0-9.]+ \| 1 \|' "$work/tree/evidence/README.md"
    grep -qF "on an STUB, times as fast in pairs (\`--vs\`), geometric means: above 1" "$work/tree/README.md"
    grep -qxF '| 128 | causal | 7 | 1.25 | 1.5 | 1.13 | - |' "$work/tree/README.md"
    grep -qF '| `wmma` (leads) | m=32 n=64 | 12.35 | 100 | 2048 | 40 | 3.5 |' "$work/tree/evidence/README.md"
    changed='machine code changed since, so to be measured again'
    grep -A1 -xF 'Measured at commit `fed`;' "$work/tree/evidence/README.md" |
        grep -qxF "$changed: \`wmma\` (1 of 1 rows)."
    grep -qxF 'Measured at commit `abc`.' "$work/tree/evidence/README.md" # the very machine code of light
    grep -A1 -xF 'Measured at commit `def`;' "$work/tree/evidence/README.md" |
        grep -qxF "$changed: \`wgmma\` (41 of 41 rows)."
    # What another kernel's peers, and the peers in one process, add.
    jq '.[:4] | map(.kernel = "light" | .variant = "light" | .us = 10 | .peers = {fa2: 5} | .ratio = 0.5)' \
        "$work/tree/evidence/stub/peers.json" >"$work/tree/evidence/stub/peers_light.json"
    jq -n '{batch: 4, heads: 16, kv_heads: 16, seq_q: 1024, seq_kv: 1024, dim: 64, causal: false} as $p |
        [{problem: $p, ratio: 0.126, vs: "cudnn"}, {problem: $p, ratio: 0.1, vs: "fa3"},
        {problem: ($p + {batch: 16}), ratio: 2, vs: "cudnn"}, {problem: ($p + {causal: true}), status: "not_run"}] |
        map({kernel: "light", variant: "light", pace: "sustained", status: "pass", git: "abc"} + . +
        if .vs then {vs_version: "\(.vs) 9.9.9"} else {} end)' >"$work/tree/evidence/stub/versus.json"
    "$work/tree/scripts/evidence/report.sh" --readme
    grep -qF '`light`: best peer / ours (above 1: ours is faster), geometric mean 0.5 over 4 shapes' \
        "$work/tree/evidence/README.md"
    # least and best: the nearest of the two
    grep -qxF '| `light` | sustained | 64 | full | 2 | 0.5 (0.13) | 0.1 (0.1) | 0.45 (0.1) | 1 |' \
        "$work/tree/evidence/README.md"
    grep -qF 'the L2 cold. Peers: cudnn 9.9.9, fa3 9.9.9.' "$work/tree/evidence/README.md"
    grep -qxF '| `light` | sustained | 4,16,1024,64 causal: not_run | | | | | | |' "$work/tree/evidence/README.md"
    # FlashAttention 3 measured for one shape, then for all.
    jq '.[0].peers.fa3 = 1' "$work/tree/evidence/stub/peers.json" >"$work/x" &&
        mv "$work/x" "$work/tree/evidence/stub/peers.json"
    "$work/tree/scripts/evidence/report.sh" --readme
    tables=$work/tree/evidence/README.md
    [ "$(grep -cF '| over cuDNN | over FlashAttention 3 (scaled) | over the best |' "$tables")" -eq 2 ]
    jq 'map(.peers.fa3 = 4 * .us)' "$work/tree/evidence/stub/peers.json" >"$work/x" &&
        mv "$work/x" "$work/tree/evidence/stub/peers.json"
    "$work/tree/scripts/evidence/report.sh" --readme
    [ "$(grep -cF '| over cuDNN | over FlashAttention 3 | over the best |' "$work/tree/evidence/README.md")" -eq 1 ]
    grep -qE '^\| 128 \| causal \| 7 \| [0-9.]+ \| 1 \| 4 \| 1.25 \|$' "$work/tree/evidence/README.md"
    # Pairs: a column and a sentence more, in the table that has them alone.
    run grep -cE 'over the best, paired|paired: ABBA in one process' "$work/tree/evidence/README.md"
    [ "$output" -eq 0 ]
    jq 'map(.paired = {} | .paired_ratio = if .dim == 128 and .causal then 2 elif .dim == 64 then 0.5 else null end)' \
        "$work/tree/evidence/stub/peers.json" >"$work/x" && mv "$work/x" "$work/tree/evidence/stub/peers.json"
    "$work/tree/scripts/evidence/report.sh" --readme
    [ "$(grep -cF '| over FlashAttention 3 | over the best | over the best, paired |' "$tables")" -eq 1 ]
    [ "$(grep -cxF '|---|---|---|---|---|---|---|---|' "$tables")" -eq 1 ]
    grep -qE '^\| 128 \| causal \| 7 \| [0-9.]+ \| 1 \| 4 \| 1.25 \| 2 \|$' "$work/tree/evidence/README.md"
    grep -qE '^\| 256 \| full \| 6 \| .* \| 1.25 \| - \|$' "$work/tree/evidence/README.md"
    [ "$(grep -c 'paired: ABBA in one process, geometric mean of the least ratio 0.76 over 23 shapes' \
        "$work/tree/evidence/README.md")" -eq 1 ]
    sed -i 's/geometric mean 1.25/geometric mean 2.5/' "$work/tree/evidence/README.md"
    run "$work/tree/scripts/evidence/report.sh" --check
    [ "$status" -eq 1 ]
    "$work/tree/scripts/evidence/report.sh" --readme
    "$work/tree/scripts/evidence/report.sh" --check
    sed -i 's/^| 64 | full | 2 | .*/| 64 | full | 2 | 9 | 9 | 9 |/' "$work/tree/README.md"
    run "$work/tree/scripts/evidence/report.sh" --check
    [ "$status" -eq 1 ]
    [[ $output == *"README.md: tables are not current"* ]]
}
