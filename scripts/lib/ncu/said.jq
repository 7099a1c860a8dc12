# The result of gates.jq for people: a heading, then a line per gate, by tabs.
def three: if type == "number" then . * 1000 | round / 1000 else . // "-" end;
"\(.kernel // "kernel") on \(.device.name // "a recorded device"): " +
"\(.launches) launch(es) of \(.metrics.kernel_name // "nothing")",
(.gates[] | [.verdict, .gate, "\(.measured | three) \(.unit)", .rule, .reason // ""] | @tsv)
