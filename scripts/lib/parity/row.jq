# A record as a row of the table. $parity: what peers_torch.py --parity said of every folder; $folder: this record's.
([$parity[0][] | select(.dir == $folder)][0]) as $p |
(.provenance.dist == "loaded" or (.provenance.command | contains("--load"))) as $loaded |
{kernel, variant, arch: .ptxas.arch, config, code_sha256: .provenance.code_sha256,
    problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal, dtype}),
    inputs: (if $loaded then "torch" else "fa_bench" end), status, reason,
    verdict: (if $p == null then "NOT-RUN" elif $p.passed and .status == "pass" then "PASS" else "FAIL" end),
    max_abs_err: $p.exact.max_abs_err, rows_checked: $p.exact.rows_checked,
    max_abs_difference_to_torch: $p.torch.max_abs_difference,
    device: .device.name, torch: $p.torch_version, torch_device: $p.device, git: .provenance.git}
