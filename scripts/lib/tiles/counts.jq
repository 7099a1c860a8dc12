# Lines of options as {"KERNEL DIM": how many}.
def at: capture("--kernel (?<kernel>[^ ]+) --dim (?<dim>[0-9]+)") | "\(.kernel) \(.dim)";
reduce inputs as $point ({}; .[$point | at] += 1)
