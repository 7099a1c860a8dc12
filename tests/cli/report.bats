#!/usr/bin/env bats
# The page, its pictures and the README's tables, from made-up evidence.
load helper

# Records of kernels that compile today, so that they are current; the times are made up.
make_evidence() { # DIR
    mkdir -p "$1"
    printf -- '--kernel %s\n' scalar wmma light "light --dim "{64,128,256}{' --causal',} >"$1.runs"
    ./fa_bench --compile-only --arch sm_90a --runs "$1.runs" --quiet --json "$1.codes"
    jq -nc --slurpfile compiled "$1.codes" '[["2,8,512", 1], ["4,16,1024", 2]][] as [$shape, $more] |
        ($shape | split(",") | map(tonumber)) as [$b, $h, $s] |
        ({scalar: 3, light: 27, wmma: 80, cudnn: 150} | to_entries[]) as {$key, $value} |
        (first($compiled[] | select(.kernel == $key)) // {kernel: $key, config: null, provenance: {}}) |
        {schema: "fa_bench.result/1", status: "pass", kernel, variant, config, ptxas, vs: null,
        problem: {batch: $b, heads: $h, kv_heads: $h, seq_q: $s, seq_kv: $s, dim: 64, causal: false},
        provenance: {git: "abc", code_sha256: .provenance.code_sha256},
        timing: {p50_us: (1000 / $value), p90_us: (1001 / $value), p50_ci95_us: [315.25, 318.04]},
        throughput: {tflops: ($value * $more), peak_boost_tflops: 1000},
        device: {name: "NVIDIA Stub", arch: "sm_90", sm_count: 132, memory_gbytes_per_s: 4800}}' >"$1/ladder.jsonl"
    jq -nc '["light", "wmma"][] as $k | [16, 32, 64][] as $m | [4, 8][] as $w | {key: "\($k)\($m)\($w)",
        group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", kernel: $k, knobs: "m=\($m),n=64,warps=\($w)",
        status: (if $m == 64 and $w == 4 then "infeasible" else "pass" end), p50_us: (if $m == 64 and
        $w == 4 then null else 10 + $m / $w end), source_sha256: "new"}' >"$1/leaderboard.jsonl"
    jq -nc '{key: "stale", group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", kernel: "light",
        knobs: "m=16,n=64,warps=4", status: "pass", p50_us: 1.5, source_sha256: "old"}' |
        cat - "$1/leaderboard.jsonl" >"$1/x" && mv "$1/x" "$1/leaderboard.jsonl"
    jq -s '[{group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", leader: "wmma", kernels: {wmma: (.[] |
        select(.kernel == "wmma") | {knobs: "m=32,n=64", p50_us: 12.345, registers: 100, smem_bytes: 2048, kernel,
        config, arch: .ptxas.arch, problem: "2,8,512,64", git: "fed", code_sha256: .provenance.code_sha256})}}]' \
        "$1.codes" >"$1/leaderboard.json"
    jq -nc '{kernel: "wmma", group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", strategy: "evo", candidates: 40,
        space: 96, measured: 40, compiled_cold: 38, status: {pass: 40}, seconds: 11.4, per_second: 3.5}' \
        >"$1/sweeps.jsonl"
    jq -n '[{p50_us: 12.345, p90_us: 13, kernel: "wmma", knobs: "m=32", registers: 100, smem_bytes: 2048}]' \
        >"$1/micro_best.json"
    scripts/peers.sh --dry-run | jq -nR '[inputs | [scan("[0-9]+") | tonumber] as [$batch, $heads, $seq, $dim] |
        {batch: $batch, heads: $heads, seq: $seq, dim: $dim, causal: test("--causal"), dtype: "fp16"}]' >"$1/shapes"
    # Each shape with the machine code of light for its dim and mask.
    jq --slurpfile compiled "$1.codes" 'map(. as $s | first($compiled[] | select(.kernel == "light" and
        .problem.dim == $s.dim and .problem.causal == $s.causal)) as $c | . + {kernel: "light", variant: "light",
        config: $c.config, arch: $c.ptxas.arch, code_sha256: $c.provenance.code_sha256})' "$1/shapes" >"$1.light"
    jq 'map(. + {us: 8, tflops: 1, peers: {fa2: 12, cudnn: 8, fa3_scaled: 9}, best_peer: "cudnn", ratio: 1.25,
        git: "def"})' "$1.light" >"$1/peers.json"
    jq -c '.[] | . as $row | ({sustained: {cudnn: 1.25, fa3: 1.125}, rested: {cudnn: 1.5}} | to_entries[]) as $pace |
        ($pace.value | to_entries[]) as {$key, $value} | {schema: "fa_bench.result/1", status: "pass", kernel, variant,
        config, ptxas: {arch}, problem: {batch, heads, kv_heads: (if .batch == 1 then .heads / 2 else .heads end),
        seq_q: .seq, seq_kv: .seq, dim, causal, dtype: "fp16"}, throughput: {tflops: 600},
        timing: {p50_us: 4.5, sm_clock_mhz: {p50: 1755}, percent_of_peak_at_clock: 62.5},
        vs: {kernel: $key, compiler: "\($key) 9.28", ratio: $value, ratio_ci95: [$value, $value], p50_us: 4,
        other_p50_us: 5}, device: {name: "NVIDIA Stub"}, provenance: {git: "9e5", code_sha256, command:
        "\([.batch, .heads, .seq, .dim, .causal])\(if $pace.key == "rested" then " --rest-ms 12" else "" end)
        --vs \($key)"
        }}' "$1.light" | gzip >"$1/versus.jsonl.gz"
    rm "$1/shapes"
    scripts/ncu_profile.sh --import tests/golden/ncu_h200_wmma.csv --record tests/golden/ncu_h200_wmma.record.json \
        --out "$1.ncu" >/dev/null || true
    jq -c . "$1.ncu/ncu_h200_wmma.json" >"$1/ncu.jsonl"
}

page() { scripts/evidence/report.sh --no-compile "$@"; }

# A page, once for the file; a test that begins with it takes a copy.
setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/build/test-cache}
    make_evidence "$BATS_FILE_TMPDIR/ev"
    ! command -v gnuplot >/dev/null || page --dir "$BATS_FILE_TMPDIR/ev" >"$BATS_FILE_TMPDIR/said"
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

@test "the pictures, the tables, the gates, each with its record" {
    needs_gnuplot
    made
    python3 -c 'import sys, xml.dom.minidom; [xml.dom.minidom.parse(f) for f in sys.argv[1:]]' "$work"/ev/plots/*.svg
    for name in ladder sweep roofline peers; do
        grep -q "src=\"plots/$name.svg\"" "$work/ev/report.html"
    done
    [ -z "$(grep NOT-RUN "$work/ev/report.html" | grep -v class=)" ]
    grep -q '>wmma_qk<\|>light<' "$work/ev/plots/ladder.svg"
    grep -q '>12.0<' "$work/ev/plots/sweep.svg"           # m=16, warps=8
    [ -z "$(grep '>1.5<' "$work/ev/plots/sweep.svg")" ]   # an old source's time
    grep -q '>fa3 9.28<' "$work/ev/plots/peers.svg"
    has 'tensor pipe active (%)</button>' '✗ 14.5</td>' \
        '<td>wmma</td><td>2,8,8,512,512,64,full</td><td>evo</td><td class="n" data-v="40">40</td><td>pass 40</td>' \
        '<td class="n" data-v="12.345">12.3</td><td class="n" data-v="13">13.0</td><td>wmma</td><td>m=32</td>' \
        '<b>1.13x</b>as fast as the fastest library, back to back, in pairs: the geometric mean of 41 shapes' \
        '<b>1.50x</b>as fast as the fastest library, each launch after a pause' \
        '315.3 to 318.0' 'NVIDIA Stub, sm_90, 132 SMs' '<li><a href="#paces">Peers at both paces</a></li>' \
        'Records: <a href="peers.json">peers.json</a>. No row was looked at: its machine code may be another' \
        '<dd>ladder.jsonl: not looked at' '<td class="n advice" data-v="14.5' ' met</td>'
    # No commit, no red for advice, a peer by its name and version, a picture's colours in the dark.
    [ -z "$(grep -e '<dt>Commit' -e 'class="n FAIL' "$work/ev/report.html")" ]
    has '<td>cuDNN</td>' '<td>cudnn 9.28</td>' '<td>the fastest measured</td>'
    grep -q 'fill="rgb(  0,   0,   0)"\] { fill: #e4e7eb' "$work/ev/plots/ladder.svg"
}

@test "peers at both paces: every peer and the fastest of them; without a rested pair the command that measures it" {
    needs_gnuplot
    made
    has '<section id="paces"><h2>Peers at both paces</h2>' 'From <a href="versus.jsonl.gz">versus.jsonl.gz</a>' \
        '<td>light</td><td>rested</td><td>cudnn 9.28</td><td class="n" data-v="41">41</td>' \
        '<td>sustained</td><td>the fastest measured</td><td class="n" data-v="41">41</td><td class="n" data-v="1.125' \
        '<td>1,32/16,4096,128 causal</td><td>rested</td><td>light</td>' '<td class="n" data-v="62.5">62.5</td>' \
        'Records: <a href="versus.jsonl.gz">versus.jsonl.gz</a>. No row was looked at'
    [ -z "$(grep 'measured rested yet' "$work/ev/report.html")" ]
    zcat "$work/ev/versus.jsonl.gz" | grep -v -- --rest-ms | gzip >"$work/x"
    mv "$work/x" "$work/ev/versus.jsonl.gz"
    page --dir "$work/ev"
    has 'No pair was measured rested yet:' '<code>scripts/evidence/evidence.sh versus</code> on a GPU'
}

@test "the same page from the same evidence; what is torn is refused" {
    needs_gnuplot
    made
    (cd "$work/ev" && sha256sum report.html plots/*) >"$work/sums"
    printf '{"key": "to' >>"$work/ev/leaderboard.jsonl"
    refused 2 "leaderboard.jsonl:14: cut off" page --dir "$work/ev"
    sed -i '$d' "$work/ev/leaderboard.jsonl"
    page --dir "$work/ev"
    (cd "$work/ev" && sha256sum --quiet -c "$work/sums")
    [ -z "$(grep NOT-RUN "$work/ev/report.html" | grep missing)" ]
}

@test "what is missing is NOT-RUN on the page" {
    needs_gnuplot
    mkdir "$work/ev"
    run -0 page --dir "$work/ev"
    [ "$(grep -c 'class="missing">NOT-RUN' "$work/ev/report.html")" -eq 3 ]
}

@test "no gnuplot is NOT-RUN; bad arguments are refused; --dry-run writes nothing" {
    mkdir -p "$work/bin" "$work/ev"
    for tool in bash dirname jq env; do ln -s "$(command -v "$tool")" "$work/bin/"; done
    run -4 env PATH="$work/bin" scripts/evidence/report.sh --dir "$work/ev"
    [[ $output == *"NOT-RUN: no gnuplot"* ]]
    refused 2 "no folder" scripts/evidence/report.sh --dir "$work/none"
    refused 2 "--no-compile goes with --check or --dir" scripts/evidence/report.sh --no-compile
    page --dir "$work/ev" --dry-run | grep -q 'versus.jsonl: missing'
    [ -z "$(ls "$work/ev")" ]
}

@test "bounds and several GPUs: a row per point, of the ladder one per kernel; a page of all" {
    needs_gnuplot
    mkdir -p "$work/ev"
    jq -n '{points: 2, percent_of_bound: {median: 60}, below_bound: []}' >"$work/ev/bound.json"
    jq -nc '{kernel: ("wmma", "mma", "mma"), us: 10, bound_us: 6, problem: "2,8,512,64", options: "--m 32 --n 64",
        percent_of_bound: 60, binds: "tensor", file: "ladder/2x8x512x64/x.json", mhz: 1000, pipe_clocks: {tensor: 6000,
        mufu: 1, fma: 2, alu: 3, shared: 4, issue: 5, l2: 6}}' | gzip >"$work/ev/bound.json.points.jsonl.gz"
    mkdir "$work/other"
    run -0 page --dir "$work/ev" --dir "$work/other/"
    has '<td>m=32 n=64</td>' '<td>tensor 1</td>' '<b>60 %</b>'
    grep -q '>tensor us<' "$work/ev/report.html"
    zcat "$work/ev/bound.json.points.jsonl.gz" | jq -es -L scripts/lib 'include "report"; [pipe_rows] | length == 2'
    grep -qF '<a href="ev/report.html">ev</a>' "$work/index.html"
    grep -qF '<a href="other/report.html">other</a>' "$work/index.html"
    # Two cards: on the shapes that both have, and none else.
    cp -r "$BATS_FILE_TMPDIR/ev" "$work/one"
    cp -r "$BATS_FILE_TMPDIR/ev" "$work/two"
    jq -c 'select(.kernel != "light") | .throughput.tflops *= (if .kernel == "wmma" then 4 else 1 end)' \
        "$work/one/ladder.jsonl" >"$work/two/ladder.jsonl"
    page --dir "$work/one" --dir "$work/two"
    grep -qF '<td>ladder, TFLOP/s</td><td>one over two</td><td class="n" data-v="6">6</td><td class="n" data-v="0.62' \
        "$work/index.html"
    grep -qF '<td>over the fastest library, rested</td><td>one over two</td><td class="n" data-v="41">41</td>' \
        "$work/index.html"
    grep -qF '1.50 (41 shapes)</td>' "$work/index.html"
}

@test "where a tool is missing no document changes: no jq, no compiler, no headers, a row that does not compile" {
    mkdir -p "$work/tree/evidence/stub" "$work/bin"
    cp -r --parents README.md docs/{kernels,features,serving,backward}.md evidence/README.md scripts "$work/tree"
    export FA_BENCH=$PWD/fa_bench
    local tree=$work/tree tool
    ./fa_bench --kernel light --compile-only --arch sm_90a --quiet --json - | jq -c . >"$work/light"
    cp "$work/light" "$tree/evidence/stub/ladder.jsonl"
    (cd "$tree" && sha256sum README.md docs/{kernels,features,serving,backward}.md evidence/README.md) >"$work/sums"
    refuses() { # WORDS COMMAND...: each script says so, and nothing is written
        local words=$1 what
        shift
        for what in "report.sh --readme" "evidence_current.sh evidence/stub/ladder.jsonl" \
            "evidence_index.sh --dir evidence/stub"; do
            refused 4 "$words" "$@" bash -c "exec $tree/scripts/evidence/$what"
        done
        (cd "$tree" && sha256sum --quiet -c "$work/sums")
        [ ! -e "$tree/evidence/stub/README.md" ]
    }
    for tool in bash dirname env nproc realpath sed awk sort find mktemp rm cat grep; do
        ln -s "$(command -v "$tool")" "$work/bin/"
    done
    refuses "NOT-RUN: no jq" env PATH="$work/bin"
    jq -c '.kernel = "cute" | .variant = "cute"' "$work/light" >"$tree/evidence/stub/ladder.jsonl"
    CUTLASS_DIR=$work/none refuses "NOT-RUN: cute needs the headers of cutlass" env
    cp "$work/light" "$tree/evidence/stub/ladder.jsonl"
    if unshare -rm true 2>/dev/null && [[ -d /usr/local/cuda ]]; then # as tests/cli/compile.bats hides it
        mkdir "$work/empty"
        cat >"$work/hidden" <<END
exec unshare -rm bash -c 'mount --bind "$work/empty" "$(readlink -f /usr/local/cuda)" && exec "\$@"' _ "\$@"
END
        refuses "NOT-RUN: no NVRTC" bash "$work/hidden"
    fi
    # A compiler that dies leaves no record: the row is not looked at, and is no other machine code.
    printf '#!/bin/sh\ncase "$*" in *--runs*) exit 6 ;; esac\nexec "%s" "$@"\n' "$FA_BENCH" | executable "$work/dies"
    export FA_BENCH=$work/dies
    "$tree/scripts/evidence/evidence_current.sh" evidence/stub/ladder.jsonl |
        grep -qx 'evidence/stub/ladder.jsonl: 0 of 1 current, 1 not looked at'
    for tool in "report.sh --readme" "evidence_index.sh --dir evidence/stub"; do
        refused 4 "could not be compiled" "$tree"/scripts/evidence/$tool
    done
    (cd "$tree" && sha256sum --quiet -c "$work/sums")
}

@test "--readme --table kernels writes that table alone, from the registry: no evidence, no compiler" {
    mkdir -p "$work/tree/evidence/stub"
    cp -r --parents README.md docs/{kernels,features,serving,backward}.md evidence/README.md scripts "$work/tree"
    sed -i 's/^| `light` |.*/| `light` | old |/' "$work/tree/docs/kernels.md"
    echo damaged >"$work/tree/evidence/stub/ladder.jsonl"
    FA_BENCH=$PWD/fa_bench "$work/tree/scripts/evidence/report.sh" --readme --table kernels
    cmp docs/kernels.md "$work/tree/docs/kernels.md"
    cmp README.md "$work/tree/README.md"
    FA_BENCH=$PWD/fa_bench refused 2 "evidence/stub/ladder.jsonl:1: not JSON" \
        "$work/tree/scripts/evidence/report.sh" --readme
    cmp README.md "$work/tree/README.md"
}

# bats file_tags=slow
@test "rows of other machine code are in no table, card or picture, and are counted" {
    needs_gnuplot
    made
    zcat "$work/ev/versus.jsonl.gz" | jq -c 'if .problem.dim == 64 then .provenance.code_sha256 = "other" |
        .vs.ratio = 99 else . end' | gzip >"$work/x" && mv "$work/x" "$work/ev/versus.jsonl.gz"
    scripts/evidence/report.sh --dir "$work/ev"
    has 'Machine code equals today'"'"'s: 75 of 123 rows; left out: `light` 48 of 123.' \
        'the geometric mean of 25 shapes; ahead on 25' '<p class="stale">Not counted, of other machine code than' \
        'light on 1,32,16384,64 causal (3)' 'versus.jsonl: 75 of 123 rows'
    [ -z "$(grep '>99.00<' "$work/ev/report.html")" ]
    grep -q '>D=128 full<' "$work/ev/plots/peers.svg"
    [ -z "$(grep '>D=64 full<' "$work/ev/plots/peers.svg")" ]
}

@test "pages in Chromium, three widths, light and dark: nothing wider than the window, no error, no lost link" {
    needs_gnuplot
    command -v chromium >/dev/null || skip "no chromium"
    cp -r evidence/h200 "$work/h200"
    cp -r evidence/h200 "$work/other"
    rm "$work/other/versus.jsonl.gz" "$work/other/sweeps.jsonl"
    page --dir "$work/h200" --dir "$work/other"
    run tests/browse.py "$work/h200/report.html" "$work/other/report.html" "$work/index.html"
    echo "$output"
    [ "$status" -eq 0 ]
    # It sees what is wrong.
    sed 's|<h2>Summary</h2>|&<p style="width: 2000px">x</p><a href="gone.json">gone</a><script>nothing()</script>|' \
        "$work/h200/report.html" >"$work/h200/wrong.html"
    run -1 tests/browse.py "$work/h200/wrong.html"
    [[ $output == *"390 light: "*" pixels wider than the window"* && $output == *"1600 dark: error: "* ]]
    [[ $output == *"no such file: $work/h200/gone.json"* ]]
}

@test "README tables come from evidence, say so while there is none, and --check sees an edit" {
    mkdir "$work/tree"
    cp -r --parents README.md docs/{kernels,features,serving,backward}.md evidence/README.md scripts "$work/tree"
    export FA_BENCH=$PWD/fa_bench
    "$work/tree/scripts/evidence/report.sh" --readme
    grep -q 'No ladder.jsonl under evidence/ yet' "$work/tree/evidence/README.md"
    grep -q 'No versus.jsonl under evidence/ yet' "$work/tree/README.md"
    "$work/tree/scripts/evidence/report.sh" --check
    local tables=$work/tree/evidence/README.md stub=$work/tree/evidence/stub
    make_evidence "$stub"
    readme() { "$work/tree/scripts/evidence/report.sh" --readme; }
    check() { "$work/tree/scripts/evidence/report.sh" --check; }
    change() { # FILE JQ
        jq "$2" "$stub/$1" >"$work/x" && mv "$work/x" "$stub/$1"
    }
    run -1 check
    readme
    check
    grep -qF '| `light` |  | 37 (27) | 37 (54) |' "$tables"
    grep -qF 'geometric mean 1.25 over 41 shapes' "$tables"
    grep -qE '^\| 128 \| causal \| 7 \| [0-9.]+ \| 1 \|' "$tables"
    grep -qF "on an STUB, times as fast in pairs (\`--vs\`), geometric means: above 1" "$work/tree/README.md"
    grep -qxF '| head dim | mask | shapes | cudnn 9.28 | cudnn 9.28, rested | fa3 9.28 |' "$work/tree/README.md"
    grep -qxF '| 128 | causal | 7 | 1.25 | 1.5 | 1.13 |' "$work/tree/README.md"
    grep -qF '| 2,8,8,512,512,64 full | `wmma` (leads) | m=32 n=64 | 12.35 | 100 | 2048 | 40 of 96 | 3.5 |' "$tables"
    run ! grep -E '^[^|].{120}' "$tables"
    local said
    for said in '8 of 8 rows (`evidence/stub/ladder.jsonl`)' '41 of 41 rows (`evidence/stub/peers.json`)' \
        '123 of 123 rows (`evidence/stub/versus.jsonl.gz`)'; do
        grep -qxF "Machine code equals today's: $said." "$tables"
    done
    # A row that is not current any more, of a table that says that all are: it is left out, and counted.
    cp "$stub/ladder.jsonl" "$work/ladder"
    jq -c 'if .kernel == "scalar" then .provenance.code_sha256 = "other" else . end' "$work/ladder" \
        >"$stub/ladder.jsonl"
    run -1 check
    readme
    check
    grep -qxF "Machine code equals today's: 6 of 8 rows (\`evidence/stub/ladder.jsonl\`)\
; left out: \`scalar\` 2 of 2." "$tables"
    [ -z "$(grep '^| `scalar` |  |' "$tables")" ]
    cp "$work/ladder" "$stub/ladder.jsonl"
    # Of two cards the one with more rows is shown.
    mkdir "$work/tree/evidence/another"
    head -n 2 "$work/ladder" >"$work/tree/evidence/another/ladder.jsonl"
    "$work/tree/scripts/evidence/report.sh" --table ladder | grep -qF '(`evidence/stub/ladder.jsonl`)'
    rm -r "$work/tree/evidence/another"
    # What another kernel's peers, and the peers in one process, add; a mean over fewer shapes says so.
    jq '.[:4] | map(.us = 10 | .peers = {fa2: 5} | .ratio = 0.5) | .[0].peers.fa4 = 20' "$stub/peers.json" \
        >"$stub/peers_light.json"
    zcat "$stub/versus.jsonl.gz" | jq -c 'select(.problem.dim == 64 and (.provenance.command | test("--rest") | not)) |
        if .problem.seq_q == 512 and .problem.causal and .vs.kernel == "fa3" then .status = "not_run" | .vs = null
        elif .problem.seq_q == 1024 and .vs.kernel == "cudnn" then .vs.ratio = 0.5 else . end' | gzip >"$work/x"
    mv "$work/x" "$stub/versus.jsonl.gz"
    readme
    grep -qF '`light`: best peer / ours (above 1: ours is faster), geometric mean 0.5 over 4 shapes' "$tables"
    grep -qxF '| 64 | causal | 1 | 0.5 | - | 0.5 |' "$tables"
    grep -qxF '| 64 | full | 3 | 0.5 | 2 (1) | 0.5 |' "$tables"
    grep -E '^\| `light` \| sustained \| 64 \| causal \| 7 \|' "$tables" |
        grep -qE ' [0-9.]+ \(0.5\) \| 1.13 \(1.13\), [0-9] shapes \|'
    grep -qF '| over cudnn 9.28 | over fa3 9.28 | over the best |' "$tables"
    grep -qE '^\| `light` \| sustained \| [0-9]+,[0-9]+,512,64 causal: not_run \|( \|)+$' "$tables"
    # FlashAttention 3 measured for one shape, then for all; a version where the rows have one.
    change peers.json '.[0].peers.fa3 = 1'
    readme
    grep -qF '| over cuDNN | over FlashAttention 3 (scaled) | over the best |' "$tables"
    change peers.json 'map(.peers.fa3 = 4 * .us | .libraries = {fa3: {version: "3.1"}})'
    readme
    grep -qF '| over cuDNN | over FlashAttention 3 3.1 | over the best |' "$tables"
    grep -qE '^\| 128 \| causal \| 7 \| 1.5 \| 1 \| 4 \| 1.25 \|$' "$tables"
    # Pairs: a column and a sentence more, in the table that has them alone.
    [ -z "$(grep -E 'over the best, paired|paired: ABBA in one process' "$tables")" ]
    change peers.json 'map(.paired = {} | .paired_ratio = if .dim == 128 and .causal then 2 elif .dim == 64 then 0.5
        else null end)'
    readme
    grep -qF '| over FlashAttention 3 3.1 | over the best | over the best, paired |' "$tables"
    [ "$(grep -cxF '|---|---|---|---|---|---|---|---|' "$tables")" -eq 2 ]
    grep -qE '^\| 128 \| causal \| 7 \| 1.5 \| 1 \| 4 \| 1.25 \| 2 \|$' "$tables"
    grep -qE '^\| 256 \| full \| 6 \| .* \| 1.25 \| - \|$' "$tables"
    grep -qF 'paired: ABBA in one process, geometric mean of the least ratio 0.76 over 23' "$tables"
    sed -i 's/geometric mean 1.25/geometric mean 2.5/' "$tables"
    run -1 check
    readme
    check
    sed -i 's/^| 64 | full | 9 | .*/| 64 | full | 9 | 9 | 9 |/' "$work/tree/README.md"
    run -1 check
    [[ $output == *"README.md: tables are not current"* ]]
}
