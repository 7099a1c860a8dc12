# test_lib_abi compares our declarations with the vendor headers, where there are any.
$(BUILD)/tests/unit/test_lib_abi: CPPFLAGS += $(addprefix -isystem ,$(firstword $(wildcard /usr/local/cuda/include)))
