#!/usr/bin/env bats
# Damaged files as input of the scripts: one line that names the file and says what is wrong, exit 2, nothing written.
load stub_bench

# Every script, and for each file with JSON that it reads: the file's name, what it holds, whether it may be missing
# ("output": it is made where it is missing or empty, and gone on with), and the command. DIR is the file's folder, FILE
# its path, OUT a file or folder that is written. "-": the script reads none, but what it or fa_bench has made.
table() {
    cat <<'END_OF_TABLE'
brief.sh                      ladder.jsonl               record   optional  --from DIR --out OUT
brief.sh                      leaderboard.jsonl.gz       line     optional  --from DIR --out OUT
brief.sh                      leaderboard.json           board    optional  --from DIR --out OUT
brief.sh                      scores.jsonl               score    needed    --scores FILE --out OUT
ci_gate.sh                    cases.jsonl                case     needed    --sanitize --resume FILE --out OUT --dry-run
evaluate.sh                   -
evo_slurm.sh                  -
evo_sweep.sh                  -
evo_test_one.sh               -
export.sh                     records.jsonl              record   needed    --format csv --out OUT FILE
export.sh                     records.jsonl.gz           record   needed    --format rbk-report --out OUT FILE
export.sh                     leaderboard.jsonl          line     needed    --format t4 --out OUT DIR
compare.sh                    records.jsonl              record   needed    FILE FILE --out OUT
compare.sh                    leaderboard.json           board    needed    FILE FILE --out OUT
ncu_profile.sh                gates.json                 gate     needed    --import CSV --thresholds FILE --out OUT
ncu_profile.sh                record.json                record   needed    --import CSV --record FILE --out OUT
peers.sh                      dense.jsonl                beside   output    --kernel two --library none --out FILE
setup.sh                      -
evidence/bound_evidence.sh    rows.json                  row      needed    --sample 1 --out OUT FILE
evidence/bound_evidence.sh    b.json.points.jsonl.gz     point    needed    --judge --out DIR/b.json
evidence/bound_time.sh        -
evidence/evidence.sh          -
evidence/evidence_current.sh  rows.jsonl                 row      needed    FILE
evidence/evidence_index.sh    ladder.jsonl               record   optional  --dir DIR
evidence/l4.sh                bound.jsonl.gz             bounded  needed    --page --dir DIR
evidence/ladder.sh            leaderboard.json           board    optional  --board FILE --out OUT
evidence/ladder.sh            ladder.jsonl               record   output    --out FILE
evidence/pairs.sh             some.jsonl                 record   needed    FILE --out OUT.jsonl
evidence/pairs.sh             pairs.jsonl                record   output    --problems PROBLEMS --vs one --out FILE
evidence/parity.sh            -
evidence/peers_env.sh         -
evidence/report.sh            ladder.jsonl               record   optional  --no-compile --dir DIR
evidence/report.sh            leaderboard.jsonl.gz       line     optional  --no-compile --dir DIR
evidence/report.sh            micro_best.json            best     optional  --no-compile --dir DIR
evidence/report.sh            peers.json                 peer     optional  --no-compile --dir DIR
evidence/report.sh            dense.jsonl                beside   optional  --no-compile --dir DIR
evidence/report.sh            sweeps.jsonl               sweep    optional  --no-compile --dir DIR
evidence/sweep_scaling.sh     rates.jsonl                rate     needed    --table FILE
house/check_bats.sh           -
house/check_format.sh         -
house/check_includes.sh       -
house/check_size.sh           -
house/check_workflows.sh      -
house/code_hashes.sh          -
house/compile_all.sh          grid.points.jsonl          tile     output    --run --resume --out DIR/grid
house/manual.sh               -
END_OF_TABLE
}

# A whole file of each kind, a value a line.
setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    local good=$BATS_FILE_TMPDIR
    head -n 6 evidence/h200/ladder.jsonl >"$good/record"
    zcat studies/sweep_candidates.jsonl.gz | jq -c 'select(.kernel == "light")' | tail -n 20 >"$good/line"
    jq -nc '{group: "G|sm_90a|2,8,8,512,512,64,full|fp32", leader: "one",
        kernels: {one: {kernel: "one", knobs: "m=16", p50_us: 40}}}' >"$good/board"
    jq -nc '{schema: "fa_bench.score/1", candidate: "k.cu", combined_score: 0, text_feedback: "wrong"}' >"$good/score"
    zcat evidence/h200/sanitize.cases.jsonl.gz | head -n 3 >"$good/case"
    jq -c '.[]' scripts/lib/ncu/thresholds.json >"$good/gate"
    jq -c '.[]' evidence/h200/peers_fa4.json | head -n 3 >"$good/peer"
    head -n 3 evidence/h100_80gb_hbm3/features.jsonl >"$good/beside"
    jq -c 'del(.peers)' "$good/peer" >"$good/row"
    zcat evidence/h200/bound.json.points.jsonl.gz | head -n 5 >"$good/point"
    zcat evidence/l4/bound.jsonl.gz | head -n 3 >"$good/bounded"
    jq -nc '{kernel: "light", knobs: "m=16", p50_us: 1}' >"$good/best"
    head -n 3 evidence/h200/sweeps.jsonl >"$good/sweep"
    head -n 2 evidence/h200/sweep_scaling.jsonl >"$good/rate"
    jq -nc '{point: "--kernel x --m 1"}' >"$good/tile"
}

# A damaged copy of FROM as $file. A key of a value is one without which no script can do.
damage() { # HOW FROM
    local key='(keys as $keys | first((if has("peers") then "batch" else empty end), "candidate", "gate",
        "kernel", "group", "verdict", "spaces", "point" | select(IN($keys[]))))'
    case $1 in
        missing) return ;;
        empty) : >"$file" && return ;;
        folder) mkdir "$file" && return ;;
        binary) head -c 3000 /bin/sh | tail -c 2000 >"$file" && return ;;
        not_gzip) { printf '\037\213\010'; cat "$2"; } >"$file" && return ;;
        cut) head -c -9 "$2" >"$file" ;;
        torn) { head -c 20 "$2" && echo && cat "$2"; } >"$file" ;;
        wide) iconv -t UTF-16 "$2" >"$file" ;;
        number) { cat "$2"; echo 7; } >"$file" ;;
        wrong_type) { cat "$2"; tail -n 1 "$2" | jq -c ".[$key] = [{}]"; } >"$file" ;;
        no_key) { cat "$2"; tail -n 1 "$2" | jq -c "del(.[$key])"; } >"$file" ;;
    esac
    [[ $file != *.gz ]] || { gzip -c "$file" >"$work/packed" && mv "$work/packed" "$file"; }
}
named() { # HOW KIND: what the line says beside the name of the file
    case $1 in
        number | wrong_type | no_key) echo 'record [0-9]+: ' ;;
        torn | wide | binary) echo ':[0-9]+: (not JSON|cut off)|damaged .gz' ;;
        cut) echo ':[0-9]+: cut off' ;;
        empty) echo 'is empty' ;;
    esac
}

all_files() {
    (cd "$work/in" && find . -type f -exec sha256sum {} + | sort)
    git status --porcelain
}

refuses_each() { # SCRIPT NAME KIND NEED COMMAND...
    local how from=$BATS_FILE_TMPDIR/$3 before words said code command=() word
    local hows=(binary cut torn number wrong_type no_key)
    [[ $4 == output ]] || hows+=(empty)
    [[ $4 != needed ]] || hows+=(missing folder)
    [[ $2 != *.gz ]] || hows+=(not_gzip)
    for how in "${hows[@]}"; do
        # The end of a file that a script goes on with is taken off.
        [[ $how != cut || "$1 $*" != *pairs.sh*--vs* && $1 != house/* ]] || continue
        rm -rf "$work/in"
        mkdir "$work/in"
        file=$work/in/$2
        damage "$how" "$from"
        command=()
        for word in "${@:5}"; do
            word=${word//DIR/$work/in} word=${word//FILE/$file} word=${word//PROBLEMS/$work/problems}
            word=${word//CSV/tests/golden/ncu_h200_wmma.csv}
            word=${word//OUT/$work/in/written}
            command+=("$word")
        done
        before=$(all_files)
        code=0
        timeout 60 scripts/"$1" "${command[@]}" >"$work/out" 2>"$work/err" </dev/null || code=$?
        said="$1 ${*:5} with $how $3: exit $code: $(head -c 500 "$work/err")"
        words=$(named "$how" "$3")
        [[ $code -eq 2 && $(wc -l <"$work/err") -eq 1 && ! -s $work/out ]] || { echo "$said"; return 1; }
        { grep -qF -- "$2" "$work/err" && grep -qE -- "$words" "$work/err"; } || { echo "$said"; return 1; }
        [[ $before == "$(all_files)" ]] || { echo "$said: a file has changed"; ls -R "$work/in"; return 1; }
    done
}

@test "every script refuses each kind of damage in each file that it reads, and leaves all files as they are" {
    local script name kind need words
    make_stub
    printf '%s\n' '--seq 128' >"$work/problems"
    export PEERS_TORCH=/bin/false
    while read -r script name kind need words; do
        [[ $name != - ]] || continue
        refuses_each "$script" "$name" "$kind" "$need" $words
    done < <(table)
}

@test "every script is in the table" {
    diff <(table | cut -d' ' -f1 | sort -u) <(cd scripts && printf '%s\n' *.sh {evidence,house}/*.sh | sort)
}

@test "whole files are taken" {
    local good=$BATS_FILE_TMPDIR
    mkdir "$work/from"
    cp "$good/record" "$work/from/ladder.jsonl"
    gzip -c "$good/line" >"$work/from/leaderboard.jsonl.gz"
    jq -s . "$good/board" >"$work/from/leaderboard.json"
    scripts/brief.sh --from "$work/from" --scores "$good/score" --out "$work/page"
    grep -q 'Kernels of the registry' "$work/page"
    scripts/export.sh --format csv "$work/from" "$good/record" >"$work/csv"
    [ "$(wc -l <"$work/csv")" -eq 27 ]
    scripts/evidence/sweep_scaling.sh --table "$good/rate" | grep -q '^| '
    gzip -c "$good/bounded" >"$work/from/bound.jsonl.gz"
    scripts/evidence/l4.sh --page --dir "$work/from"
    scripts/ncu_profile.sh --import tests/golden/ncu_h200_wmma.csv --record tests/golden/ncu_h200_wmma.record.json \
        --out "$work/ncu" || [ $? -eq 1 ]
    [ -s "$work/ncu/ncu_h200_wmma.json" ]
}

@test "without jq every script that needs it is not run, names it, and leaves all files as they are" {
    local script name kind need words word before code
    make_stub
    mkdir "$work/bin" "$work/in"
    ln -s /usr/bin/* "$work/bin/"
    rm "$work/bin/jq"
    printf '%s\n' '--seq 128' >"$work/problems"
    {
        table | grep -v -- ' -$'
        printf '%s x x x %s\n' evaluate.sh examples/plain.cu evo_test_one.sh '16 4 8' evidence/evidence.sh all \
            evidence/parity.sh '' evidence/bound_time.sh '' house/code_hashes.sh '' \
            house/manual.sh '' evidence/report.sh '--readme' evidence/report.sh '--readme --table kernels'
    } >"$work/rows"
    while read -r script name kind need words; do
        words=${words//DIR/$work/in} words=${words//FILE/$work/in/$name} words=${words//OUT/$work/in/written}
        words=${words//CSV/tests/golden/ncu_h200_wmma.csv} words=${words//PROBLEMS/$work/problems}
        [[ $name == x ]] || gzip -c "$BATS_FILE_TMPDIR/$kind" >"$work/in/$name"
        before=$(all_files)
        code=0
        PATH=$work/bin timeout 60 scripts/$script $words >"$work/out" 2>"$work/err" </dev/null || code=$?
        [[ $code -eq 4 && $(wc -l <"$work/err") -eq 1 && $(<"$work/err") == *"NOT-RUN: no jq"* && ! -s $work/out ]] ||
            { echo "$script $words: exit $code: $(head -c 400 "$work/err")"; return 1; }
        [[ $before == "$(all_files)" ]] || { echo "$script $words: a file has changed"; return 1; }
    done <"$work/rows"
    ln -s /usr/bin/jq "$work/bin/"
    rm "$work"/bin/python3*
    for script in peers.sh evo_sweep.sh evidence/pairs.sh evidence/l4.sh; do
        PATH=$work/bin refused 4 "$(basename $script): NOT-RUN: no python3" scripts/$script
    done
    rm "$work/bin/sha256sum" # its sums tell one candidate's score from another's
    PATH=$work/bin refused 4 "evaluate.sh: NOT-RUN: no sha256sum" scripts/evaluate.sh examples/plain.cu
}
