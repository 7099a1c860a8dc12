#!/usr/bin/env bats
# Evidence is current while its machine code is what compiles today.
load helper

# A folder of kernels that may be edited, and a record, a summary row and a comparison made from it.
make_rows() {
    mkdir -p "$work/home"
    cp -r kernels include "$work/home/"
    export FA_HOME=$work/home
    ./fa_bench --kernel scalar --arch sm_80 --dim 40 --causal --compile-only --quiet --json "$work/record.json"
    jq '{kernel, arch: .ptxas.arch, config, problem: "2,8,512,40 causal", code_sha256: .provenance.code_sha256,
        git: "abc"}' "$work/record.json" >"$work/row.json"
    jq '. as $r | .kernel = "cublas" | .variant = "cublas" | .config = null | .ptxas = null |
        .device = {arch: "sm_80"} |
        .provenance.code_sha256 = null | .vs = {kernel: "scalar", config: $r.config,
        code_sha256: $r.provenance.code_sha256}' "$work/record.json" >"$work/vs.json"
    jq -c '[., (.code_sha256 = null), (.config = null), (.status = "infeasible" | .code_sha256 = null)],
        {kernels: [{kernel: "cudnn", code_sha256: null}]}' "$work/row.json" | gzip >"$work/rows.jsonl.gz"
}

current() { scripts/evidence/evidence_current.sh "$@"; }

@test "a comment and another layout of the lines leave every row current, another instruction none" {
    make_rows
    files=("$work/record.json" "$work/row.json" "$work/vs.json")
    printf '%s: 1 of 1 current\n' "${files[@]}" >"$work/all"
    diff "$work/all" <(current "${files[@]}")
    sed -i 's,^__device__\|^static __device__\|^extern "C",/* moved */\n\n&,' "$FA_HOME/kernels/scalar.cu"
    run ! cmp -s kernels/scalar.cu "$FA_HOME/kernels/scalar.cu"
    diff "$work/all" <(current "${files[@]}")
    sed -i 's|weight = exp2_approx(|weight = exp2_approx(0.5f * |' "$FA_HOME/kernels/scalar.cu"
    [ "$(current "${files[@]}" | grep -c ': 0 of 1 current')" -eq 3 ]
}

@test "no hash or no whole configuration is not current; what was infeasible does not count; a library is its name" {
    make_rows
    [ "$(current "$work/rows.jsonl.gz")" = "$work/rows.jsonl.gz: 2 of 4 current" ]
    current --rows "$work/rows.jsonl.gz" | jq -es 'map([.kernel, .git, .current]) ==
        [["scalar", "abc", true], ["scalar", "abc", false], ["scalar", "abc", false], ["cudnn", null, true]]'
    [ "$(current --sample 1 "$work/rows.jsonl.gz")" = "$work/rows.jsonl.gz: 1 of 1 current" ]
    # A pair with --vs library:FILE.so, as scripts/evidence/pairs.sh has it in its table.
    jq '. + {problem: {batch: 2, heads: 8, seq_q: 512, seq_kv: 512, dim: 40, causal: true}, vs: "fa3"}' \
        "$work/row.json" >"$work/pair.json"
    [ "$(current "$work/pair.json")" = "$work/pair.json: 1 of 1 current" ]
}

@test "another mask, dim, tile or architecture has another hash" {
    make_rows
    for change in '.problem = "2,8,512,40"' '.problem = "2,8,512,48 causal"' '.config.warps = 4' '.arch = "sm_89"'; do
        jq "$change" "$work/row.json" >"$work/other.json"
        [ "$(current "$work/other.json")" = "$work/other.json: 0 of 1 current" ]
    done
}

@test "bad arguments are refused; no binary is not run" {
    refused 2 "no FILE" scripts/evidence/evidence_current.sh
    refused 2 "cannot read" scripts/evidence/evidence_current.sh "$work/none"
    refused 2 "--sample takes a whole number" scripts/evidence/evidence_current.sh --sample x
    echo '{' >"$work/torn.json"
    refused 2 "torn.json:1: cut off" scripts/evidence/evidence_current.sh "$work/torn.json"
    FA_BENCH=$work/none refused 4 "no $work/none" scripts/evidence/evidence_current.sh README.md
}

# bats test_tags=slow
@test "the index of a folder: what each file shows, commits, rows that are current; --check sees what is out of step" {
    make_rows
    mkdir -p "$work/gpu/plots"
    jq -s . "$work/row.json" >"$work/gpu/parity.json"
    cp "$work/record.json" "$work/gpu/ncu.jsonl"
    touch "$work/gpu/report.html" "$work/gpu/plots/peers.svg" # drawn by make report
    cp "$work/rows.jsonl.gz" "$work/gpu/versus.jsonl.gz"
    index() { scripts/evidence/evidence_index.sh --dir "$work/gpu" "$@"; }
    refused 1 "run scripts/evidence/evidence_index.sh" index --check
    index
    index --check
    grep -qE '^\| `parity.json` \| the same result .* \| `scripts/evidence/evidence.sh parity` \| 1 of 1 \|$' \
        "$work/gpu/README.md"
    grep -qE '^\| `versus.jsonl.gz` .* \| 2 of 4 \|$' "$work/gpu/README.md"
    grep -qE '^\| `ncu.jsonl` .* \| 1 of 1 \|$' "$work/gpu/README.md"
    jq 'map(.code_sha256 = "other")' "$work/gpu/parity.json" >"$work/x"
    cp "$work/x" "$work/gpu/parity.json"
    refused 1 "not all current: $work/gpu/parity.json" index --check
    index
    index --check
    grep -qE '^\| `parity.json` .* \| 0 of 1 \|$' "$work/gpu/README.md"
    jq '. + .' "$work/gpu/parity.json" >"$work/x" && cp "$work/x" "$work/gpu/parity.json"
    index --check # rows are counted in the last column alone
    cp "$work/row.json" "$work/gpu/peers.json"
    run -1 index --check
    touch "$work/gpu/notes.txt"
    refused 1 "notes.txt has no entry in scripts/lib/evidence/files.json" index
}

@test "code_hashes.sh: a rule counts where it matches, the default tile where no rule serves every problem" {
    counted() { # JQ: on the options of every rule
        jq -L scripts/lib -r 'import "tiles" as m; m::hashes' --argjson only '[]' --arg archs sm_80,sm_89,sm_90a \
            <<<'[{"name": "k", "kind": "hand", "op": "forward", "variant_of": null, "min_arch": 80,
                 "defaults": {"m": 1}, "rules": [
                {"serves": "k", "op": "forward", "max_dim": 64, "config": {"m": 2}, "min_arch": 89, "max_arch": 89},
                {"serves": "k", "op": "forward", "max_dim": 128, "config": {"m": 3}, "min_arch": 90},
                {"serves": "k", "op": "forward", "max_dim": 256, "config": {"m": 4}, "causal": true}]}]' |
            sed -E 's/.*--arch ([^ ]*) .*(--m [0-9]+) #k:(.*)/\1 \2 \3/' | sort -u
    }
    [ "$(counted)" = "sm_80 --m 1 4
sm_80 --m 1 5
sm_80 --m 1 6
sm_80 --m 4 3
sm_89 --m 1 5
sm_89 --m 1 6
sm_89 --m 2 1
sm_89 --m 4 3
sm_90a --m 1 6
sm_90a --m 3 2
sm_90a --m 4 3" ]
}
