#!/usr/bin/env bats
# scripts/export.sh: the same results in the formats of others, read back by those others.
load stub_bench
load ../search/packages

# The folder of the ladder's records on the canonical problem, a file per kernel.
ladder() {
    if [[ ! -d $work/ladder ]]; then
        mkdir "$work/ladder"
        jq -r 'select(.problem.seq_q == 512) | [.kernel, tojson] | join("\t")' evidence/h200/ladder.jsonl |
            while IFS=$'\t' read -r kernel record; do echo "$record" >"$work/ladder/$kernel.json"; done
    fi
    echo "$work/ladder"
}

# A whole sweep of kernel `one` on the stub, once for the file: best m=16,warps=8 at 40 us; m=32,warps=4 is wrong.
setup_file() {
    local work=$BATS_FILE_TMPDIR
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    (
        make_stub
        echo 'one 32 4' >"$STUB/wrong"
        scripts/evo_sweep.sh --kernel one --strategy grid --out "$work/lb"
    ) >"$work/said" 2>&1
}
swept() {
    cp -r "$BATS_FILE_TMPDIR/lb" "$work"
}

@test "CSV and Markdown: a line per result, every field in its column, of records and of leaderboards" {
    swept
    ./fa_bench --source examples/plain.cu "${small[@]}" --m 32 --json "$work/r.json" --quiet
    scripts/export.sh --format csv "$work/lb" "$work/r.json" --out "$work/x.csv"
    python3 - "$work/x.csv" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 5, rows
best = min((r for r in rows if r["p50_us"]), key=lambda r: float(r["p50_us"]))
assert [best[k] for k in ("kernel", "m", "warps", "p50_us", "status")] == ["one", "16", "8", "40", "pass"], best
assert [r["reason"] for r in rows if r["status"] == "wrong"] == ["made up"], rows
mine = rows[-1]
assert [mine[k] for k in ("kernel", "seq_q", "dim", "gpu", "p50_us")] == ["plain", "33", "16", "CPU emulator", ""], mine
END
    [ "$(scripts/export.sh --format csv --status wrong "$work/lb" | wc -l)" -eq 2 ]
    scripts/export.sh --format markdown "$work/lb" >"$work/x.md"
    grep -qxF "| one | m=16,warps=8 | 2,8,8,512,512,64,full | NVIDIA Stub | pass | 40 | 41 |  | 64 | 1000 | 0 |  |" \
        "$work/x.md"
    [ "$(awk -F'|' '{print NF}' "$work/x.md" | sort -u)" -eq 14 ]
}

@test "BF16 is told from FP16; what was compiled alone proves nothing; a list and lines read the same" {
    local run=(./fa_bench --source "$work/a,b|c.cu" "${small[@]}" --m 32 --quiet)
    cp examples/plain.cu "$work/a,b|c.cu"
    "${run[@]}" --json "$work/fp16"
    "${run[@]}" --dtype bf16 --json "$work/bf16"
    ./fa_bench --source "$work/a,b|c.cu" --seq 33 --m 32 --quiet --compile-only --arch sm_89 --json "$work/compiled"
    jq -c . "$work"/{fp16,bf16,compiled} >"$work/lines"
    jq -s . "$work"/{fp16,bf16,compiled} >"$work/list"
    scripts/export.sh --format csv "$work/lines" >"$work/csv"
    scripts/export.sh --format csv "$work/list" | cmp - "$work/csv"
    [ "$(python3 -c 'import csv, sys; print([(r["kernel"], r["dtype"]) for r in csv.DictReader(sys.stdin)][:2])' \
        <"$work/csv")" = "[('a,b|c', 'fp16'), ('a,b|c', 'bf16')]" ]
    scripts/export.sh --format t4 "$work/list" | jq -e '.results | length == 2'
    scripts/export.sh --format rbk-report --out "$work/t" "$work/list"
    jq -e '.problems | map(.problem | test("bf16")) == [false, true] and all(.[]; .criteria[0].met)' \
        "$work/t/rbk_report.json"
    tests/validate_record.py "$work/t/rbk_report.json"
    refused 2 "nothing to export as rbk-report" scripts/export.sh --format rbk-report --out "$work/u" "$work/compiled"
    refused 2 "nothing to export as kernel-tuner-cache" scripts/export.sh --format kernel-tuner-cache "$work/compiled"
    refused 2 "nothing to export as kernelbench" scripts/export.sh --format kernelbench --out "$work/u" "$work/bf16"
}

@test "the last line of a key counts; a torn line and other JSON are refused; .gz and stdin are read" {
    swept
    tail -n 1 "$work/lb/leaderboard.jsonl" | jq -c '.p50_us = 7' >>"$work/lb/leaderboard.jsonl"
    gzip -c "$work/lb/leaderboard.jsonl" >"$work/x.jsonl.gz"
    [ "$(scripts/export.sh --format csv "$work/x.jsonl.gz" | wc -l)" -eq 5 ]
    [ "$(scripts/export.sh --format csv /dev/stdin <"$work/lb/leaderboard.jsonl" | grep -c ',7,')" -eq 1 ]
    cp "$work/lb/leaderboard.jsonl" "$work/other"
    echo '{"what": "else"}' >>"$work/other"
    refused 2 "other: record 6: it is neither a record of fa_bench nor a line" \
        scripts/export.sh --format csv "$work/other"
    echo '{"key": "torn", "kn' >>"$work/lb/leaderboard.jsonl"
    refused 2 "leaderboard.jsonl:6: " scripts/export.sh --format csv "$work/lb"
}

@test "usage: a format, something to export, one space for a cache file" {
    swept
    refused 2 "--format takes" scripts/export.sh --format xml "$work/lb"
    refused 2 "takes a FILE or FOLDER" scripts/export.sh --format csv
    refused 2 "nothing to export" scripts/export.sh --format csv --kernel none "$work/lb"
    refused 2 "no file '$work/nowhere'" scripts/export.sh --format csv "$work/nowhere"
    tail -n 1 "$work/lb/leaderboard.jsonl" | jq -c '.kernel = "two" | .key = "2"' >>"$work/lb/leaderboard.jsonl"
    refused 2 "one kernel and one group" scripts/export.sh --format kernel-tuner-cache "$work/lb"
}

@test "T4: every status is the invalidity that it is" {
    swept
    local status
    for status in infeasible compile_error timeout error not_run; do
        tail -n 1 "$work/lb/leaderboard.jsonl" | jq -c --arg s "$status" '.key = $s | .status = $s | .p50_us = null'
    done >>"$work/lb/leaderboard.jsonl"
    tail -n 1 "$work/lb/leaderboard.jsonl" | # a kernel with a deadlock has no numbers
        jq -c '.key = "fault" | .status = "wrong" | .fault = "deadlock"' >>"$work/lb/leaderboard.jsonl"
    scripts/export.sh --format t4 "$work/lb" >"$work/t4.json"
    jq -e '.schema_version == "1.0.0" and (.results | length == 9)
        and ([.results[].invalidity] | group_by(.) | map({(.[0]): length}) | add)
            == {correct: 3, correctness: 1, constraints: 1, compile: 1, timeout: 1, runtime: 2}
        and all(.results[]; (.correctness == 1) == (.invalidity == "correct"))
        and (.results[] | select(.configuration == {m: 16, warps: 8} and .correctness == 1)
            | .times.runtimes == [0.04]
                and .measurements[0] == {name: "time", value: 0.04, unit: "ms"})' "$work/t4.json"
}

@test "FlashInfer: a folder of definitions, workloads and traces" {
    refused 2 "needs --out FOLDER" scripts/export.sh --format flashinfer "$(ladder)/mma.json"
    jq -c '.problem.scale = 0.5' "$(ladder)/mma.json" >"$work/scaled" # another problem
    scripts/export.sh --format flashinfer --out "$work/t" "$(ladder)"/{mma,cublas}.json "$work/scaled"
    jq -e '.reference | test(" 0.5\n")' "$work"/t/definitions/attention/*_full_scale0p5.json
    ./fa_bench --definition "$work"/t/definitions/attention/*_full_scale0p5.json --compile-only --quiet \
        --workload "$work"/t/workloads/attention/*_full_scale0p5.jsonl --json "$work/r.json" || [ $? -eq 4 ]
    record_holds "$work/r.json" '.problem | .scale == 0.5 and .seq_q == 512' # read back
    local name=attention_fp16_h8_kv8_d64_full
    jq -e '.axes.heads == {type: "const", value: 8} and (.reference | test("0.125"))' \
        "$work/t/definitions/attention/$name.json"
    jq -es 'length == 1 and .[0].workload.axes == {batch: 2, seq_q: 512, seq_kv: 512}' \
        "$work/t/workloads/attention/$name.jsonl"
    ./fa_bench --select --definition "$work/t/definitions/attention/$name.json" \
        --workload "$work/t/workloads/attention/$name.jsonl" | grep -F "B=2 H=8 S=512 D=64 FP16 full"
    jq -es 'length == 2 and all(.[]; .evaluation.status == "PASSED") and .[1].solution == "cublas"
        and .[0].evaluation.performance.latency_ms > 0' "$work/t/traces/fa_bench/attention/$name.jsonl"
}

# Records of examples/published, on the emulator, with times made up; the folder $work/t.
published() { # [JQ]
    ./fa_bench --definition examples/published/definition.json --source tests/features/plain.cu --device emu --seeds 1 \
        --check cpu --quiet --workload examples/published/workload.jsonl:2 --json "$work/r.json"
    { jq -c ".timing = {p50_us: 20, p90_us: 21} | ${1:-.}" "$work/r.json"
      jq -c '.timing = null | .status = "error" | .reason = "made up"' "$work/r.json"; } >"$work/published"
    scripts/export.sh --format flashinfer --out "$work/t" "$work/published"
}

@test "FlashInfer: a record of a published problem is a trace of its workload, and says what the published rule says" {
    published
    local name=gqa_paged_decode_h8_kv2_d64_ps16 file
    jq -e --slurpfile want examples/published/definition.json '. == $want[0]' "$work/t/definitions/gqa_paged/$name.json"
    jq -e '.solution == null and .workload.uuid == "example-11"' "$work/t/workloads/gqa_paged/$name.jsonl"
    file=$work/t/traces/fa_bench/gqa_paged/$name.jsonl
    jq -es --arg name $name 'map(.evaluation.status) == ["PASSED", "RUNTIME_ERROR"] and
        all(.[]; .definition == $name and .workload.inputs.sm_scale.value == 0.125) and
        .[0].workload.axes.batch_size == 4 and
        .[0].evaluation.correctness.extra.published_tolerance == "passes"' "$file"
    tolerance() { # JQ of the record
        rm -r "$work/t"
        published "$1"
        jq -r '.evaluation.correctness.extra.published_tolerance // empty' "$file"
    }
    [ "$(tolerance '.check.published += {passed: false, failure: "99 % of O"}')" = "fails: 99 % of O" ]
    [[ $(tolerance 'del(.check.published)') == unknown:* ]]
    [ ! -e "$work/t/solutions" ]
    # What an attention definition of ours cannot hold is not exported as dense attention.
    jq -c '.provenance.command = "fa_bench"' "$work/r.json" >"$work/paged"
    refused 2 "nothing to export as flashinfer" scripts/export.sh --format flashinfer --out "$work/u" "$work/paged"
    jq -c '.provenance.command |= gsub("workload.jsonl"; "none.jsonl")' "$work/r.json" >"$work/lost"
    refused 2 "none.jsonl', which a record is of" scripts/export.sh --format flashinfer --out "$work/u" "$work/lost"
    [ "$(scripts/export.sh --format csv "$work/lost" | wc -l)" -eq 2 ] # others do not need it
}

@test "robust-kbench: a task folder whose parts fit each other, as its loader reads them" {
    refused 2 "needs --out FOLDER" scripts/export.sh --format robust-kbench "$(ladder)/mma.json"
    scripts/export.sh --format robust-kbench --out "$work/t" "$(ladder)"/*.json
    local folder=$work/t/attention_b2_h8_kv8_q512_kv512_d64_full
    # The fastest without tensor maps, which wgmma has, and without CUTLASS, which cute needs.
    cmp "$folder/forward.cu" "$folder/kernels/mma.cu"
    [ "$(cd "$folder/kernels" && echo *)" = "light.cu mma.cu scalar.cu wmma.cu wmma_qk.cu" ]
    python3 - "$folder" <<'END'
import importlib.util, inspect, json, pathlib, sys, types
for name in "torch", "torch.nn", "torch.nn.functional":
    sys.modules[name] = types.ModuleType(name)
torch = sys.modules["torch"]
torch.nn, torch.Tensor, torch.float16 = sys.modules["torch.nn"], object, "FP16"
torch.nn.Module, torch.nn.functional = object, sys.modules["torch.nn.functional"]
torch.randn = lambda *shape, dtype: (shape, dtype)
torch.nn.functional.scaled_dot_product_attention = lambda *qkv, **options: (qkv, options)
folder = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("task", folder / "func_forward.py")
task = importlib.util.module_from_spec(spec)
spec.loader.exec_module(task)
config = json.loads((folder / "config_forward.json").read_text())
assert sorted(config) == [f"{a}_{b}_configs" for a in ("multi", "single") for b in ("init", "input", "shared")]
for kind in "single", "multi":
    for init in config[f"{kind}_init_configs"]:
        for given in config[f"{kind}_input_configs"]:
            for shared in config[f"{kind}_shared_configs"]:
                model, inputs = task.Model(**{**init, **shared}), task.get_inputs(**{**given, **shared})
                assert len(inputs) == len(task.input_names) and all(x[1] == "FP16" for x in inputs)
                assert inputs[0][0] == (given["batch"], given["kv_heads"], 512, 64), inputs
                assert model.forward(*inputs, fn=lambda *x: x) == tuple(inputs)
assert task.Model().forward(1, 2, 3) == ((1, 2, 3), {"scale": 0.125})
assert config["single_input_configs"] == [{"batch": 2, "kv_heads": 8, "seq_q": 512, "seq_kv": 512}]
assert list(inspect.signature(task.forward_fn).parameters) == ["q", "k", "v"] and "Args:" in task.forward_fn.__doc__
END
}

@test "KernelBench: a reference and a model that holds its kernel" {
    jq -c '.problem |= (.causal = true | .kv_heads = 2 | .seq_kv = 700)' "$(ladder)/light.json" >"$work/r.json"
    scripts/export.sh --format kernelbench --out "$work/t" "$(ladder)/light.json" "$work/r.json"
    python3 - "$work/t" <<'END'
import ast, pathlib, sys
folder = pathlib.Path(sys.argv[1])
names = sorted(path.stem for path in folder.iterdir())
square, other = "attention_b2_h8_kv8_q512_kv512_d64_full", "attention_b2_h8_kv2_q512_kv700_d64_causal"
assert names == sorted([square, square + "_light", other, other + "_light"]), names
tree = lambda name: ast.parse((folder / f"{name}.py").read_text()).body
top = lambda name: {node.name for node in tree(name) if hasattr(node, "name")}
for name in square, other:
    assert top(name) == {"Model", "get_inputs", "get_init_inputs"} and top(name + "_light") == {"ModelNew"}
text = (folder / f"{other}.py").read_text()  # bottom-right, and a key head serves four query heads
assert "tril(k.shape[2] - q.shape[2])" in text and "repeat_interleave(4, dim=1)" in text and "is_causal" not in text
source = next(node.value.value for node in tree(other + "_light") if getattr(node, "targets", None)
    and node.targets[0].id == "source")
assert "#define FA_CAUSAL 1" in source and "PYBIND11_MODULE" in source and '#include "' not in source
END
}

@test "rbk_report: SDPA, ladder, best tile and criteria, met and not met" {
    scripts/export.sh --format rbk-report --out "$work/t" evidence/h200/ladder.jsonl evidence/h200/peers_fa4.json
    jq -e '(.problems | length == 3) and (.problems[0] | .problem == "2,8,8,512,512,64,full"
        and (.ladder | length == 9) and .best == (.ladder | map(select(.library | not)) | min_by(.p50_us))
        and ([.sdpa[].name] | index("fa4") != null)
        and all(.criteria[]; .met and .compared > 0))' "$work/t/rbk_report.json"
    grep -qE '^\| mma \| m=32,n=32,.* \| pass \| [.0-9]+ \| [.0-9]+ \| [.0-9]+ \| cute \| 1[.][.0-9]+ \(' \
        "$work/t/rbk_report.md"
    jq -c '.status = "wrong" | .timing = null | .throughput = null' "$(ladder)/wmma.json" >"$work/wrong"
    jq -c '.vs.ratio = 1.02 | .vs.ratio_ci95 = [1.01, 1.03]' "$(ladder)/mma.json" >"$work/noise"
    jq -c '.timing.p50_us = 1' "$(ladder)/cudnn.json" >"$work/cudnn"
    scripts/export.sh --format rbk-report --out "$work/u" "$work"/{wrong,noise,cudnn}
    jq -e '.problems[0] | [.criteria[] | .met] == [false, false, false] and .best.kernel == "mma"
        and .ladder[-1].status == "wrong"' "$work/u/rbk_report.json"
    scripts/export.sh --format rbk-report --out "$work/v" "$(ladder)/scalar.json"
    jq -e '.problems[0] | [.criteria[] | .met] == [true, null, null]' "$work/v/rbk_report.json"
    tests/validate_record.py "$work"/{t,u,v}/rbk_report.json
}

@test "--out: a device or a pipe is written in place, a link stays a link, after a full disk no part is left" {
    mkfifo "$work/pipe"
    cat "$work/pipe" >"$work/came" &
    scripts/export.sh --format csv studies/sweep_candidates.jsonl.gz --out "$work/pipe"
    wait $!
    [ -p "$work/pipe" ] && [ -s "$work/came" ]
    scripts/export.sh --format csv studies/sweep_candidates.jsonl.gz --out /dev/stdout >"$work/seen"
    cmp "$work/came" "$work/seen"
    echo old >"$work/file"
    ln -s file "$work/link"
    scripts/export.sh --format csv studies/sweep_candidates.jsonl.gz --out "$work/link"
    [ -L "$work/link" ]
    cmp "$work/came" "$work/file"
    code=0
    bash -c "ulimit -f 1; trap '' XFSZ
        scripts/export.sh --format csv studies/sweep_candidates.jsonl.gz --out '$work/new'" || code=$?
    [ "$code" -ne 0 ]
    [ -z "$(find "$work" -name 'new*')" ]
}

# bats file_tags=slow
@test "Kernel Tuner takes the T4 file by its schema, and replays the cache file without a GPU" {
    needs_packages
    swept
    scripts/export.sh --format t4 "$work/lb" --out "$work/t4.json"
    scripts/export.sh --format kernel-tuner-cache "$work/lb" --out "$work/cache.json"
    cd "$work"
    "$python" - <<'END'
import json, jsonschema, kernel_tuner
from kernel_tuner.file_utils import output_file_schema
jsonschema.validate(json.load(open("t4.json")), output_file_schema("results")[1])
cache = json.load(open("cache.json"))
assert len(cache["cache"]) == 4, cache
for strategy in ("brute_force", "random_sample"):
    results, environment = kernel_tuner.tune_kernel(cache["kernel_name"], "", tuple(cache["problem_size"]), [],
        cache["tune_params"], cache="cache.json", simulation_mode=True, strategy=strategy, lang="C", quiet=True,
        strategy_options={"max_fevals": 4} if strategy != "brute_force" else {})
    right = [r for r in results if "__error__" not in r]
    best = min(right, key=lambda r: r["time"])
    assert (best["m"], best["warps"], best["time"]) == (16, 8, 0.04), (strategy, best)
    if strategy == "brute_force":
        assert len(results) == 4 and len(right) == 3, results  # the wrong one is an error, not a time
END
    # The file of docs/search.md: a recorded search, which did not try every point of its space.
    cd "$BATS_TEST_DIRNAME/../.."
    eval "$(grep -h -- '--format kernel-tuner-cache' docs/search.md | sed "s|--out |--out $work/|")"
    cd "$work"
    "$python" - <<'END'
import json, kernel_tuner
cache = json.load(open("light.json"))
points = cache["cache"].values()
space = 1
for values in cache["tune_params"].values():
    space *= len(values)
missing = [p for p in points if p.get("unrecorded")]
assert len(points) == space and len(missing) == space - 90 and all(p["time"] == "InvalidConfig" for p in missing)
fastest = min(p["time"] for p in points if isinstance(p["time"], float))
times = [p["time"] for p in points if isinstance(p["time"], (int, float))]
simulated = dict(cache="light.json", simulation_mode=True, lang="C", quiet=True)
args = cache["kernel_name"], "", tuple(cache["problem_size"]), [], cache["tune_params"]
for results, _ in (kernel_tuner.tune_kernel(*args, **simulated), kernel_tuner.tune_cache("light.json", quiet=True)):
    right = [r["time"] for r in results if "__error__" not in r]
    assert len(right) == len(times) and min(right) == fastest, (len(right), len(times))
for strategy in "random_sample", "genetic_algorithm", "simulated_annealing":
    kernel_tuner.tune_kernel(*args, **simulated, strategy=strategy, strategy_options={"max_fevals": 30})
END
}

@test "FlashInfer-Bench's own data classes take the folder, failures too" {
    needs_packages
    local record status
    record=$(ladder)/mma.json
    for status in wrong infeasible compile_error timeout error not_run; do
        jq -c --arg s "$status" '.status = $s | .reason = "made up" | .problem.causal = ($s == "error")
            | if $s == "wrong" then . else .timing = null | .check = null end' "$record"
    done >"$work/failures"
    scripts/export.sh --format flashinfer --out "$work/ours" "$record" "$work/failures"
    published
    "$python" - "$work/ours" <<'END'
import importlib, importlib.util, pathlib, sys, types
root = pathlib.Path(sys.argv[1])
where = pathlib.Path(importlib.util.find_spec("flashinfer_bench").origin).parent
for name, path in ("flashinfer_bench", where), ("flashinfer_bench.data", where / "data"):
    sys.modules[name] = types.ModuleType(name)  # the packages' own imports need PyTorch
    sys.modules[name].__path__ = [str(path)]
Definition = importlib.import_module("flashinfer_bench.data.definition").Definition
Trace = importlib.import_module("flashinfer_bench.data.trace").Trace
definitions = [Definition.model_validate_json(f.read_text()) for f in root.glob("definitions/*/*.json")]
assert len(definitions) == 2 and {d.op_type for d in definitions} == {"attention"}
for d in definitions:
    assert d.const_axes == {"heads": 8, "kv_heads": 8, "dim": 64} and d.var_axes_bindings["seq_kv"] == ("k", 2), d
Solution = importlib.import_module("flashinfer_bench.data.solution").Solution
solutions = [Solution.model_validate_json(f.read_text()) for f in root.glob("solutions/*/*/*/*.json")]
assert [(s.definition, s.spec.binding.value) for s in solutions] == [("attention_fp16_h8_kv8_d64_full", "tvm-ffi")]
assert [s.path for s in solutions[0].sources] == ["main.cu", "kernel.cuh", "launch.cuh"]
lines = lambda pattern: [Trace.model_validate_json(t) for f in root.glob(pattern) for t in f.read_text().splitlines()]
workloads = lines("workloads/*/*.jsonl")
assert len(workloads) == 2 and all(w.is_workload_trace() for w in workloads)
traces = lines("traces/*/*/*.jsonl")
assert sum(t.is_successful() for t in traces) == 1
assert sorted(t.evaluation.status.value for t in traces) == [
    "COMPILE_ERROR", "COMPILE_ERROR", "INCORRECT_NUMERICAL", "PASSED", "RUNTIME_ERROR", "TIMEOUT"], traces
root = root.parent / "t" # a published problem: the same classes read it back
definition, = (Definition.model_validate_json(f.read_text()) for f in root.glob("definitions/*/*.json"))
assert definition.const_axes == {"num_qo_heads": 8, "num_kv_heads": 2, "head_dim": 64, "page_size": 16}, definition
workload, = lines("workloads/*/*.jsonl")
traces = lines("traces/*/*/*.jsonl")
assert workload.is_workload_trace() and all(t.workload == workload.workload for t in traces)
assert [t.evaluation.status.value for t in traces] == ["PASSED", "RUNTIME_ERROR"] and traces[0].is_successful(), traces
END
}

@test "FlashInfer: the solution builds as FlashInfer-Bench builds it" {
    needs_packages
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    [[ -x $nvcc ]] || skip "no nvcc"
    scripts/export.sh --format flashinfer --out "$work/t" "$(ladder)/light.json"
    "$python" - "$work"/t/solutions/*/*/*/light_*.json "$work" <<'END'
import json, pathlib, sys
for source in json.load(open(sys.argv[1]))["sources"]:
    (pathlib.Path(sys.argv[2]) / source["path"]).write_text(source["content"])
END
    local include
    include=$("$python" -c 'import tvm_ffi.libinfo as l; print(l.find_include_path())')
    ln -s "$include" "$work/ffi" # nvcc takes no folder whose name has quotes
    "$nvcc" -std=c++17 -O2 -arch=sm_90a -shared -Xcompiler -fPIC -I "$work/ffi" "$work/main.cu" -o "$work/main.so"
    nm -D "$work/main.so" | grep -q ' T __tvm_ffi_run$'
}

@test "the one file that torch builds is right on the emulator, without the launcher" {
    scripts/export.sh --format robust-kbench --out "$work/t" "$(ladder)/light.json"
    sed '/^.. Starts the kernel/,$d' "$work"/t/*/forward.cu >"$work/light_alone.cu"
    run ! grep -q '^#include "' "$work/light_alone.cu"
    ./fa_bench --source "$work/light_alone.cu" --device emu --batch 1 --heads 1 --seq 40 --dim 64 --m 32 --n 128 \
        --warps 4 --seeds 1 --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"'
}

@test "nvcc builds the extensions with the flags of torch and robust-kbench" {
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    [[ -x $nvcc ]] || skip "no nvcc"
    scripts/export.sh --format robust-kbench --out "$work/t" "$(ladder)"/{scalar,light,wmma_qk,wmma,mma}.json
    local kernel flags=(-D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__)
    for kernel in "$work"/t/*/kernels/*.cu; do
        "$nvcc" -std=c++17 -O3 --use_fast_math "${flags[@]}" -arch=sm_90 -shared -Xcompiler -fPIC \
            -I tests/search/torch "$kernel" -o "$work/extension.so"
        nm -D "$work/extension.so" | grep -q ' T init_module$'
    done
}
