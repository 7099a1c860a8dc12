# Each ends with one line: how many tests passed, failed, were skipped (tests/run_all.sh).
.PHONY: check test test-all test-asan

# Half a minute: the house rules, the unit tests, one kernel on the emulator.
check:
	@scripts/setup.sh check
	@$(MAKE) --no-print-directory -j$$(nproc) all check-binaries
	@tests/run_all.sh --check

# Minutes: the whole contract.
test: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all test-binaries
	@tests/run_all.sh

# What `make test` leaves out: every schedule, sanitizer and tile on the emulator, mutants, fuzzers, slow command lines.
test-all:
	@scripts/setup.sh all
	@$(MAKE) --no-print-directory -j$$(nproc) all test-binaries fuzz-where-possible
	@tests/run_all.sh --rest

# The driver under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer.
test-asan: setup
	@tests/asan.sh

-include $(wildcard tests/unit/*.mk tests/emu/*.mk tests/fuzz/*.mk)
