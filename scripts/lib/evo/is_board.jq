# True of a whole leaderboard.json (with jq -s).
def is_object: type == "object";
length == 1 and (.[0] | type == "array" and all(.[]; is_object and (.kernels | is_object and all(.[]; is_object))))
