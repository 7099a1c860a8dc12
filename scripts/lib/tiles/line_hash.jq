# A record of --compile-only as a line: its options, whether it compiled, the hash of its machine code.
($points | split("\n"))[.provenance.line - 1] as $point |
{point: $point, status, reason, code_sha256: .provenance.code_sha256}
