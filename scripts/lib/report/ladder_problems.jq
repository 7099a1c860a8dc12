# The problems of ladder.json, the smallest first.
include "report/numbers";
map(select(.tflops != null)) | map(.problem) | unique_by(work) | .[]
