# Tests that compare what they say with a file of tests/golden.
$(BUILD)/tests/unit/test_judgements $(BUILD)/tests/unit/test_invariance \
	$(BUILD)/tests/unit/test_selection: $(BUILD)/tests/unit/golden.o
$(BUILD)/tests/unit/golden.o: CPPFLAGS += -Isrc
-include $(BUILD)/tests/unit/golden.d
