# A line of sweeps.jsonl for people.
(.status | to_entries | map("\(.key) \(.value)") | join(", ")) +
"; \(.measured) measured in \(.seconds) s, \(.per_second) candidates per second, \(.compiled_cold) compiled anew"
