# The geometric means of the rows of $shapes. $pairs: 0 with --no-pairs.
include "peers/name";
include "numbers";
($shapes[0] | map(key)) as $keys | map(select(key as $k | any($keys[]; . == $k))) | map(select(.ratio != null)) |
if . == [] then "no ratio" else
    length as $all | map(.paired_ratio | values) as $paired |
    "geometric mean of best peer / ours over \($all) shapes: \(map(.ratio) | mean | thousandths)" +
    if $pairs == 0 or $paired == [] then "" else
        " (solo), \($paired | mean | thousandths) (paired" +
        if ($paired | length) < $all then ", over \($paired | length))" else ")" end
    end
end
