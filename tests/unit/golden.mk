# Tests that compare what they say with a file of tests/golden.
$(addprefix $(BUILD)/tests/unit/test_,judgements invariance reference selection timelines timing paired): \
	$(BUILD)/tests/unit/golden.o
$(BUILD)/tests/unit/golden.o: CPPFLAGS += -Isrc
$(BUILD)/tests/unit/test_selection: LDFLAGS += -Wl,--wrap=fa_registry_rules
-include $(BUILD)/tests/unit/golden.d
