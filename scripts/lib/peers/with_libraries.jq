# The peers' records and those of the libraries, $more. A library that has a time stands for the peer of its name.
include "peers/name";
map(select((peer_names[.kernel] // .kernel) as $name | any($more[]; .kernel == $name and .status == "pass") | not)) +
$more
