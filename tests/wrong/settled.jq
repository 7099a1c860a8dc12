# The cases of an earlier summary that need no second try: those of the same device, tried by what is asked for now.
select(.gpu == $gpu) | .cases[] |
select(.sha256 and ($run == 0 or .ordinary != null) and ($gate == 0 or .gate != null)) |
"\(.name) \(.sha256)\t\(tojson)"
