# test_cuda_abi compares our declarations with cuda.h, where there is one; both headers cannot be read by one file.
$(BUILD)/tests/unit/test_cuda_abi: $(BUILD)/tests/unit/cuda_abi_theirs.o
$(BUILD)/tests/unit/cuda_abi_theirs.o: \
	CPPFLAGS += $(addprefix -isystem ,$(firstword $(wildcard /usr/local/cuda/include)))
# A device of made-up samples.
ON_A_FAKE := $(addprefix $(BUILD)/tests/unit/test_,timing paired timelines)
$(ON_A_FAKE): $(BUILD)/tests/unit/fake_gpu.o
$(ON_A_FAKE) $(BUILD)/tests/unit/test_invariance: LDFLAGS += -Wl,--wrap=fa_now_s
$(BUILD)/tests/unit/fake_gpu.o: CPPFLAGS += -Isrc
-include $(BUILD)/tests/unit/fake_gpu.d
-include $(BUILD)/tests/unit/cuda_abi_theirs.d
