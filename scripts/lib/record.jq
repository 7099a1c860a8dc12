# True of one whole record of fa_bench (with jq -s).
include "is_record";
length == 1 and (.[0] | is_record)
