# A record of --compile-only in three lines: what its result is keyed by, what compiling took, its status.
"\(.provenance.source_sha256) \(.provenance.options) \(.provenance.compiler) \(.problem) \($more)",
{cache_hit: .provenance.cache_hit, compile_s: .provenance.compile_s},
.status
