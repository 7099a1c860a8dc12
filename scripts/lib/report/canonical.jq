# Of leaderboard.json, the group of the canonical problem; the first group where it was not swept.
def canonical: map(select(.group | endswith("|2,8,8,512,512,64,full|fp32")))[0] // .[0];
