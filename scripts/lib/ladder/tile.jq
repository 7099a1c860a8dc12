# leaderboard.json: the tile that leads the sweeps of $kernel on $problem (B,H,S,D, full attention, FP32 accumulators).
($problem | split(",") | "|\(.[0]),\(.[1]),\(.[1]),\(.[2]),\(.[2]),\(.[3]),full|fp32") as $group |
[.[] | select(.group | endswith($group))][0].kernels[$kernel].knobs // empty
