# The table for people: a line per failure, then one per kernel.
def count($verdict): map(select(.verdict == $verdict)) | length;
(.[] | select(.verdict == "FAIL") | "FAIL \(.kernel) \(.problem) inputs of \(.inputs): \(.status), " +
    "\(.max_abs_err) to FP64, \(.max_abs_difference_to_torch) to PyTorch"),
(group_by(.kernel)[] | "\(.[0].kernel): \(count("PASS")) agree, \(count("FAIL")) do not, " +
    "\(count("NOT-RUN")) NOT-RUN; at most \(map(.max_abs_difference_to_torch // 0) | max) from PyTorch")
