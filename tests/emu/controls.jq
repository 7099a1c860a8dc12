# The lines of the controls (with jq -s) as their summary.
def count($verdict): map(select(.verdict == $verdict)) | length;
{what: "controls", caught: count("CAUGHT"), missed: count("MISSED"), runs: map(.runs) | add, controls: .}
