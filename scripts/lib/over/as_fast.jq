# True when every shape was timed, none is below 0.98 times as fast, and the geometric mean is 0.995 or more.
include "numbers";
map(.new_over_old) | all(.[]; type == "number") and min >= 0.98 and mean >= 0.995
