# The tests of the truth share a simulated kernel; it and the reference are loops worth vectorising.
$(BUILD)/tests/unit/test_rules $(BUILD)/tests/unit/test_check: $(BUILD)/tests/unit/simulate.o
$(BUILD)/tests/unit/simulate.o $(BUILD)/src/check/reference.o: CFLAGS += -O3
$(BUILD)/tests/unit/test_check: LDFLAGS += -Wl,--wrap=fa_gpu_lock -Wl,--wrap=fa_reference_make
-include $(BUILD)/tests/unit/simulate.d
