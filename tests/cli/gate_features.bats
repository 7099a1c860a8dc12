#!/usr/bin/env bats
# The gate beyond dense forward: problems of what a kernel serves, and none of what its needs leave out.
load helper

gate() { scripts/ci_gate.sh --out "$work/gate" --draws 0 --seed 1 "$@"; }
needy() { # WORDS: tests/features/plain.cu with these needs
    sed "/^FA_KERNEL_INFO/i // FA_NEEDS: $1" tests/features/plain.cu >"$work/needy.cu"
    grep -q "FA_NEEDS: $1" "$work/needy.cu"
}

@test "features are drawn for what a kernel serves alone: each alone, in pairs, in pages that it takes" {
    local word
    gate --source tests/features/plain.cu --dry-run -- --m 64 >"$work/lines"
    for word in lengths window chunk softcap sinks alibi bias mask dim-v page-size; do
        grep -q -- "^plain||.*--$word" "$work/lines"
        grep -q -- "^plain|race|.*--$word" "$work/lines"
    done
    for word in '--dtype bf16.*' '--lse.*' '--strides padded.*' '--strides far.*' '--causal.*'; do
        grep -qE -- "$word(--window|--chunk|--softcap|--page-size)|(--window|--chunk|--page-size).*$word" "$work/lines"
    done
    gate --kernel wgmma --quick --dry-run >"$work/lines" # though a variant that serves none is the first rule's
    for word in lengths window softcap sinks; do grep -q -- "^wgmma||.*--$word" "$work/lines"; done
    gate --kernel scalar --dry-run >"$work/lines"
    run ! grep -E -e '--(lengths|window|chunk|softcap|sinks|alibi|bias|mask|dim-v|page-size)' "$work/lines"
    gate --kernel wgmma_mla --quick --dry-run >"$work/lines"
    run ! grep -v -e '--dim 576 .*--v-in-k .*--dim-v 512' "$work/lines"
    [ "$(grep -o -e '--page-size .*' "$work/lines" | cut -d' ' -f2 | sort -u)" = 64 ]
}

@test "problems for needs: like those that they leave out, and never one of these" {
    PYTHONPATH=scripts/lib/gate python3 - <<'END'
import itertools
import features, problems
words = "packed mha self aligned whole_m whole_n".split()
lines = problems.listed(draws=6) + [problems.options(p) for seed in range(3) for _, p in
                                    features.drawn(list(features.ALONE), "cuda", "plain", seed, bf16=True)]
count = 0
for needs in itertools.chain.from_iterable(itertools.combinations(words, n) for n in (1, 2, 6)):
    for line in lines:
        made, why = features.fitted_line(line, needs, 64, 48, 1.5e6, {})
        p = problems.parse(made)[0]
        assert (made == line) == (not why), (needs, line, made, why)
        assert not features.excluded(p, needs, 64, 48), (needs, line, made)
        assert any(q for q, _ in features.sequences(p)), made
        count += bool(why)
assert count > 1000, count
line, why = features.fitted_line("--m 32 --race --seq 40 --seq-kv 64 --strides odd", ("whole_m", "aligned"), 64, 64,
                                 1e6, {})
assert line.startswith("--m 32 --race ") and "--seq 64 " in line and "strides" not in line, line
assert why.startswith("needs tensors and rows on 16-byte"), why
lengths = problems.problem(lengths="17,0:9,5", softcap=2.0, sinks=True)
shrunk = problems.shrink(lengths, lambda p: p["sinks"], 5)
assert "--sinks" in problems.options(shrunk) and not {shrunk["lengths"], shrunk["softcap"]} - {None}, shrunk
END
}

# bats file_tags=slow
@test "a right kernel passes the quick gate with each feature; one that needs much is judged on the rest alone" {
    run -0 gate --source tests/features/plain.cu --quick -- --m 64
    [[ $output == *"plain: "*" passed, 0 failed, 0 skipped"*"serves varlen, window, "*"dim_v ("*"needs nothing"* ]]
    jq -e '.kernels[0] | .needs == [] and (.serves | length == 10) and .not_tried == [] and .left_out == 0' \
        "$work/gate/summary.json"
    needy "packed mha self"
    run -0 gate --source "$work/needy.cu" --quick -- --m 64
    [[ $output == *"needy: "*" passed, 0 failed, "*"needs packed, mha, self, which leaves out "* ]]
    jq -e '.kernels[0] | .needs == ["packed", "mha", "self"] and .left_out > 5 and .skipped == .left_out and
        .passed >= 20 and .not_tried == []' "$work/gate/summary.json"
    jq -es 'map(select(.verdict == "skipped")) | length > 5 and all(.[]; .text | test("needy needs (packed|a K/V|as)"))
        ' "$work/gate/cases.jsonl"
}

@test "wrong kernels of features are caught where dense forward is right" {
    local from to count=0
    while IFS='|' read -r from to; do
        python3 - "$from" "$to" "$work/wrong.cu" <<'END'
import sys
text = open("tests/features/plain.cu").read()
assert sys.argv[1] in text, sys.argv[1]
open(sys.argv[3], "w").write(text.replace(sys.argv[1], sys.argv[2]))
END
        run -1 gate --source "$work/wrong.cu" --quick --fail-fast --shrink 0 --jobs 2 -- --m 64
        [[ $output == *"FAIL wrong "* ]] || { echo "$to: $output"; return 1; }
        jq -es 'all(.[] | select(.verdict == "failed"); .feature != "" and .code == 1)' "$work/gate/cases.jsonl"
        count=$((count + 1))
    done <<'END'
at.seq_kv = p.used_kv[batch];|at.seq_kv = p.seq_kv;
    l += expf(sink - reference);|    l += 0.0f * reference;
END
    [ $count -eq 2 ]
}
