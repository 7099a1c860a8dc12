# test_cuda_abi compares our declarations with cuda.h, where there is one; both headers cannot be read by one file.
$(BUILD)/tests/unit/test_cuda_abi: $(BUILD)/tests/unit/cuda_abi_theirs.o
$(BUILD)/tests/unit/cuda_abi_theirs.o: CPPFLAGS += $(addprefix -isystem ,$(firstword $(wildcard /usr/local/cuda/include)))
