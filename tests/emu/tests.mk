# The emulator: emu_case runs one kernel, test_emu runs all of them through it.
EMU_CASE := $(BUILD)/tests/emu/emu_case
EMU_TESTS := $(patsubst %,$(BUILD)/tests/emu/%,test_emu test_emu_race test_emu_hopper test_emu_kernels)
check-binaries: $(BUILD)/tests/emu/test_emu_kernels
test-binaries: $(EMU_CASE) $(EMU_TESTS) $(BUILD)/tests/emu/ptx_table

$(BUILD)/tests/emu/%: tests/emu/%.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) -Isrc -Wno-missing-prototypes $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# The core switches stacks under the sanitizers' feet: never instrumented.
$(BUILD)/src/emu/%.o: CFLAGS := $(filter-out -fsanitize=%,$(CFLAGS))
