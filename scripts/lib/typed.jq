# The element type of a problem in the names that results are compared by: " bf16"; of FP16, the default, nothing.
def typed: if (.dtype // "fp16") == "fp16" then "" else " \(.dtype)" end;
# The same as options of fa_bench, none or two.
def typed_options: if (.dtype // "fp16") == "fp16" then empty else "--dtype \(.dtype)" end;
