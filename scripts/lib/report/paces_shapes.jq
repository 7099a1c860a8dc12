# versus.json: the shapes of the kernel that has most of its rows, each with its least ratio at each pace; "ratio" for
# lib/report/peers_groups.jq.
map(select(.ratio)) | group_by(.kernel) | max_by(length) // [] | group_by(.problem) |
map((group_by(.pace) | map({(.[0].pace): min_by(.ratio)}) | add) as $paces | .[0].problem | {batch, heads, seq: .seq_q,
    dim, causal, paces: ($paces | map_values({ratio, ci95})), ratio: ($paces.sustained // $paces.rested).ratio})
