# A file of evidence: the commits that its rows name.
[.. | objects | select(has("code_sha256")).git | values] | unique | map("`\(.)`") | join(", ")
