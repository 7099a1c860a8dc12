# ladder.json: its kernels with a time, the slowest first.
def climbed: map(select(.tflops != null)) | group_by(.kernel) | sort_by(map(.tflops) | min) | map(.[0].kernel);
