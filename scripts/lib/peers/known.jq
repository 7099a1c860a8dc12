# The row of $shape in the table, where it is of this very question: kernels $asked, the peers $backends, and $pairs.
include "peers/name";
({flash: "fa2"} as $names | $backends | split(",") | map($names[.] // .)) as $wanted |
map(select(key == ($shape | key) and .asked == $asked and .status == "pass" and ($pairs == 0 or has("paired")) and
    (.peers | length) > 0 and
    ((.peers + (.absent // {})) as $answered | all($wanted[]; . as $w | $answered | has($w)))))[0] // empty
