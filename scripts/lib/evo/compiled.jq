# A record of --compile-only in three lines: what its result is keyed by, what compiling took, its status. Nothing for
# what is no record.
include "is_record";
select(is_record) |
"\(.provenance.source_sha256) \(.provenance.options) \(.provenance.compiler) \(.problem) \($more)",
{cache_hit: .provenance.cache_hit, compile_s: .provenance.compile_s},
.status
