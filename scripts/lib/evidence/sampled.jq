# Lines of rows.jq (with jq -s): $sample of each file, evenly spread over it; 0: all.
def spread: if $sample == 0 or length <= $sample then .
    else . as $all | [range($sample) | $all[. * ($all | length) / $sample | floor]] end;
group_by(.file) | map(spread) | add // [] | .[]
