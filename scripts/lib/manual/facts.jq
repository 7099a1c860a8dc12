# What the page of options and the man page share.
def groups: reduce .[] as $o ([]; if (.[-1] // [{}])[0].group == $o.group then .[-1] += [$o] else . + [[$o]] end);
def exit_codes: ["0", "pass"], ["1", "wrong result"], ["2", "usage: the message names the option and its range"],
    ["3", "infeasible configuration: the message says why"], ["4", "not run: a device, library or tool is missing"],
    ["5", "timeout"], ["6", "compile, launch or internal error"];
