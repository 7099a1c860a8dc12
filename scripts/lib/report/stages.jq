# leaderboard.jsonl: the mean seconds of each stage, by kernel.
def mean(f): map(f) | add / length;
[inputs | fromjson? | select(.status == "pass" and .stage_s != null and .p50_us != null)] | group_by(.kernel) |
map({kernel: .[0].kernel, n: length, compile: mean(.compile_s),
    stages: {start: mean(.stage_s.start), check: mean(.stage_s.check), timing: mean(.stage_s.timing),
        recheck: mean(.stage_s.recheck), turn: mean(.stage_s.turn)}})
