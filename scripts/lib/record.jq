include "is_record";
# True when the input (with jq -s) is one whole record of fa_bench.
def record: length == 1 and (.[0] | is_record);
