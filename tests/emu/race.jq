# The runs of the race detector's controls (with jq -s) as their summary. cmocka names a failed test twice.
def of($is): map(select(.is == $is));
def names: map(.name) | unique;
{what: "race_controls", racy: (of("racy") | names | length), clean: (of("clean") | names | length),
    missed: (of("racy") | map(select(.good | not)) | names),
    accused: (of("clean") | map(select(.good | not)) | names), runs: (map(select(.good)) | length)}
