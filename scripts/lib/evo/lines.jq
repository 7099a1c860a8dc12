# The lines of leaderboard.jsonl that are results ($results true), or that are none (false).
def is_string: type == "string";
def is_result: try (fromjson | (.key | is_string) and (.knobs | is_string) and
    ([.group, .kernel, .status, .source_sha256] | all(. == null or is_string)) and
    ([.p50_us, .p90_us] | all(. == null or type == "number"))) catch false;
select(is_result == $results)
