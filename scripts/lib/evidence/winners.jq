# leaderboard.json: kernel and tile of each kernel's best on the canonical problem, by tabs.
[.[] | select(.group | endswith("|2,8,8,512,512,64,full|fp32"))][0].kernels // {} |
to_entries[] | [.key, .value.knobs] | @tsv
