# leaderboard.json: "commit kernel source-sha256" of each leader of the README's table.
include "report/canonical";
canonical.kernels | to_entries[] | "\(.value.git) \(.key) \(.value.source_sha256)"
