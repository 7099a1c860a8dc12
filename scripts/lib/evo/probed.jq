# The record of a sweep's first run (jq -s): the device's name, driver, architecture and facts, with tabs between; or
# not_run and the reason. Nothing for what is no record.
include "is_record";
select(length == 1) | .[0] | select(is_record) |
if .status == "not_run" then ["not_run", .reason, "-", "-"]
else [if .device.backend == "cuda" then .device.name else "CPU emulator" end, .provenance.driver // "none",
    .device.arch, (.device | {sm_count, clock_mhz_max} | tojson)] end | join("\t")
