# Words about a record of fa_bench and its problem.

# The element type of a problem in the names that results are compared by: " bf16"; of FP16, the default, nothing.
def typed: if (.dtype // "fp16") == "fp16" then "" else " \(.dtype)" end;
# The type as options of fa_bench: none for FP16.
def typed_options: if (.dtype // "fp16") == "fp16" then empty else "--dtype \(.dtype)" end;

# A whole record: what the scripts read has the type it should have, or is not there.
def maybe($types): type as $t | $t == "null" or ($types | index($t) != null);
def part($key): if .[$key] == null then {} else .[$key] end;
def all_maybe($type; values): [values] | all(maybe([$type]));
def is_record: try (
    .schema == "fa_bench.result/1" and (.status | type == "string") and
    all_maybe("string"; .kernel, .reason) and
    all_maybe("object"; .config, .problem, .device, .ptxas, .timing, .check, .vs, .provenance) and
    all_maybe("number"; (part("timing") | .p50_us, .p90_us),
        (part("ptxas") | .registers, .smem_total_bytes, .spill_store_bytes)) and
    all_maybe("string"; (part("device") | .backend, .name, .arch), (part("config") | .acc),
        (part("provenance") | .source_sha256, .code_sha256, .compiler, .driver)) and
    all_maybe("boolean"; (part("check") | .loosened), (part("vs") | .accepted), (part("problem") | .causal),
        (part("timing") | .impossible))
) catch false;
# Is the input (with jq -s) one whole record?
def record: length == 1 and (.[0] | is_record);

# What tables, pages and summaries share.
def hundredths: if . == null then "-" else . * 100 | round / 100 end;
def thousandths: if . == null then "-" else . * 1000 | round / 1000 end;
# Three figures or so: 1234, 123, 12.3, 1.23.
def short: if . >= 100 then round elif . >= 10 then . * 10 | round / 10 else . * 100 | round / 100 end;
def mean: if . == [] then null else (map(log) | add / length | exp) end; # the geometric one
# The mean of the ratios of some of $n shapes, with how many where they are fewer.
def mean_of($n): "\(mean | hundredths)\(if length == 0 or length == $n then "" else " (\(length))" end)";
def code: "`\(.)`";
def names: unique | map(code) | join(", ");
def row: "| \(join(" | ")) |";
def work: split(",") | map(tonumber) | .[0] * .[1] * .[2] * .[2] * .[3]; # of a problem "B,H,S,D"
def mask: if .causal then "causal" else "full" end;
