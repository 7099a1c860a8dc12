# `make test`: every suite adds its counts to build/test/counts; the last line says how many passed, failed, were skipped.
.PHONY: test test-asan test-unit test-emu test-cli test-house fa_tests

test: setup
	@$(MAKE) --no-print-directory -j$$(nproc) all test-binaries
	@tests/run_all.sh

# The driver under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer.
test-asan: setup
	@tests/asan.sh

UNIT_TESTS :=
-include $(wildcard tests/unit/*.mk tests/emu/*.mk tests/fuzz/*.mk)

# A unit test tests/unit/test_X.c is linked with everything but main.
UNIT_SOURCES := $(wildcard tests/unit/test_*.c)
UNIT_BINARIES := $(UNIT_SOURCES:%.c=$(BUILD)/%)
.PHONY: test-binaries
test-binaries: $(UNIT_BINARIES)

$(BUILD)/tests/unit/%: tests/unit/%.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) -Isrc -Wno-missing-prototypes $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# A folder that runs on a machine without the build's packages: the binaries with their libraries beside them.
portable: all $(EMU_CASE)
	@rm -rf $(BUILD)/portable && mkdir -p $(BUILD)/portable/lib
	@cp fa_bench $(EMU_CASE) $(BUILD)/portable/
	@for l in libcjson libcrypto libgomp; do cp -L "$$(ldd fa_bench | awk -v l="$$l" '$$1 ~ l {print $$3}')" $(BUILD)/portable/lib/; done
	@for d in kernels include src; do ln -sfn ../../$$d $(BUILD)/portable/$$d; done
