# Words about a record of fa_bench and its problem.

# K and V are FP8 under queries of 16 bits.
def fp8_cache: .kv_dtype? == "e4m3" and .dtype != "e4m3";
# The element type of a problem in the names that results are compared by: " bf16"; of FP16, the default, nothing.
def typed: (if (.dtype // "fp16") == "fp16" then "" else " \(.dtype)" end) + if fp8_cache then " kv e4m3" else "" end;
# The type as options of fa_bench: none for FP16.
# What a record's problem asks for beyond dense forward, as options; for machine code it is enough that lengths exist.
def feature_options:
    (select(.dim_v? and .dim_v != .dim) | "--dim-v \(.dim_v)"), (select(.v_in_k?) | "--v-in-k"),
    (select(.lengths?) | "--lengths 64,64"), (.window? // empty | "--window \(.[0]),\(.[1])"),
    (.chunk? // empty | "--chunk \(.)"), (.softcap? // empty | "--softcap \(.)"), (select(.sinks?) | "--sinks"),
    (select(.alibi?) | "--alibi"), (select(.bias?) | "--bias"), (select(.mask? == "tree") | "--mask tree"),
    (.page_size? // empty | "--page-size \(.)"), (select(fp8_cache) | "--kv-dtype e4m3"),
    (select(.op? == "backward") | "--op backward"), (select(.deterministic?) | "--deterministic");
def typed_options: if (.dtype // "fp16") == "fp16" then empty else "--dtype \(.dtype)" end;

# A row of scripts/peers.sh as older files, peers.json, have theirs: the problem's fields in the row, peers by name.
def by_peer:
    def by(f): map({(.peer): f}) | add // {};
    if .peers | type == "object" then . else
        (.peers | map(select(.status == "pass"))) as $good |
        ($good | map(select(.solo_us)) | by(.solo_us)) as $us |
        (.problem | {batch, heads, seq: .seq_q, dim, causal, dtype, kind:
            (if .seq_kv == .seq_q then null elif .seq_q <= 8 then "decode" else "prefill" end)} +
            if .kv_heads == .heads then {} else {kv_heads} end + if .seq_kv == .seq_q then {} else {seq_kv} end) +
        {kernel, variant, status, us: .p50_us, tflops, peers: $us, best_peer: ($us | to_entries | min_by(.value).key),
            ratio: .solo_ratio, paired_ratio: .ratio,
            paired: ($good | map(select(.ratio)) | by({ratio, ci95: .ratio_ci95})),
            torch: ($good | map(.version // empty) | unique | join(", ")), libraries: ($good |
                by({version: (.version // "" | sub("^(FlashAttention [23]|[^ ]+) "; "") | select(. != ""))}))}
    end;

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
