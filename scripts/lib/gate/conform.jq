# The conformance cases as their summary.
def count($verdict): map(select(.verdict == $verdict)) | length;
map(select(.tool == "conform")) | {what: "conform", gpu: $gpu, passed: count("passed"), failed: count("failed"),
    cases: map({name: .args, verdict, words_sha256})}
