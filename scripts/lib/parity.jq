# The tables of scripts/evidence/parity.sh.

# The records (with -s) as rows. $runs: the options of each, with its --dump FOLDER; $parity: the peers' verdicts on
# every folder (peers_torch.py --parity).
def rows: ($runs | split("\n") | map(sub(".* --dump "; ""))) as $folders | map(
    $folders[.provenance.line - 1] as $folder | ([$parity[0][] | select(.dir == $folder)][0]) as $p |
    (.provenance.dist == "loaded" or (.provenance.command | contains("--load"))) as $loaded |
    {kernel, variant, arch: .ptxas.arch, config, code_sha256: .provenance.code_sha256,
        problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal, dtype}),
        inputs: (if $loaded then "torch" else "fa_bench" end), status, reason,
        verdict: (if $p == null then "NOT-RUN" elif $p.passed and .status == "pass" then "PASS" else "FAIL" end),
        max_abs_err: $p.exact.max_abs_err, rows_checked: $p.exact.rows_checked,
        max_abs_difference_to_torch: $p.torch.max_abs_difference,
        device: .device.name, torch: $p.torch_version, torch_device: $p.device, git: .provenance.git});

# The table as text: a line per failure, then one per kernel.
def text:
    def count($verdict): map(select(.verdict == $verdict)) | length;
    (.[] | select(.verdict == "FAIL") | "FAIL \(.kernel) \(.problem) inputs of \(.inputs): \(.status), " +
        "\(.max_abs_err) to FP64, \(.max_abs_difference_to_torch) to PyTorch"),
    (group_by(.kernel)[] | "\(.[0].kernel): \(count("PASS")) agree, \(count("FAIL")) do not, " +
        "\(count("NOT-RUN")) NOT-RUN; at most \(map(.max_abs_difference_to_torch // 0) | max) from PyTorch");
