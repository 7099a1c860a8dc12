# peers.json: of $dim and $causal, at constant work: sequence length, TFLOP/s of ours and of each peer.
map(select(.dim == $dim and .causal == $causal and .us != null and .batch * .seq == 16384 and .heads * .dim == 2048)) |
sort_by(.seq) | .[] |
(if .causal then .seq * (.seq + 1) / 2 else .seq * .seq end) as $pairs |
(4 * .batch * .heads * .dim * $pairs / 1e6) as $mflop |
[.seq, $mflop / .us, (.peers | [.fa2, .cudnn, .[$fa3]] | .[] | if . then $mflop / . else "nan" end)] | @tsv
