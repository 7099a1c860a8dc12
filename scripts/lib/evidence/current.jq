# A line of rows.jq: is it current? $codes: the hashes of today, by options.
.current = all(.made_of[]; if .options then $codes[0][.options] == .code else has("library") end) | del(.made_of)
