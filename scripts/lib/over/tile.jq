# A record as the name of the kernel's file and the options of its tile, by a tab.
[.variant // .kernel, (.config | to_entries | map("--\(.key) \(.value)") | join(" "))] | @tsv
