# The runs, a line each, that none of the commands of records, $commands, ends with.
($commands | split("\n")) as $done | inputs | . as $run | select(any($done[]; endswith(" " + $run)) | not)
