# True of one whole record of fa_bench (with jq -s): what the scripts read has the type it should have, or is not there.
def maybe($types): type as $t | $t == "null" or ($types | index($t) != null);
def part($key): if .[$key] == null then {} else .[$key] end;
try (
    length == 1 and (.[0] |
    .schema == "fa_bench.result/1" and (.status | type == "string") and (.kernel | maybe(["string"])) and (.reason | maybe(["string"])) and
    ([.config, .problem, .device, .ptxas, .timing, .check, .vs, .provenance] | all(maybe(["object"]))) and
    ([(part("timing") | .p50_us, .p90_us), (part("ptxas") | .registers, .smem_total_bytes, .spill_store_bytes)] | all(maybe(["number"]))) and
    ([(part("device") | .backend, .name, .arch), (part("config") | .acc), (part("provenance") | .source_sha256, .code_sha256, .compiler, .driver)] | all(maybe(["string"]))) and
    ([(part("check") | .loosened), (part("vs") | .accepted), (part("problem") | .causal), (part("timing") | .impossible)] | all(maybe(["boolean"])))
)) catch false
