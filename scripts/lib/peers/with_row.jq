# The table with $row in the place of the shape's old one.
include "peers/name";
map(select(key != ($row | key))) + [$row]
