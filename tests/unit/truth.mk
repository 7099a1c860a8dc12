# The tests of the truth share a simulated kernel.
$(BUILD)/tests/unit/test_rules $(BUILD)/tests/unit/test_check: $(BUILD)/tests/unit/simulate.o
