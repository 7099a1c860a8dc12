# A unit test tests/unit/test_X.c is linked with everything but main. Its functions have the parameters that cmocka or
# an interface passes, used or not.
UNIT := $(BUILD)/tests/unit
UNIT_SOURCES := $(wildcard tests/unit/test_*.c)
UNIT_BINARIES := $(UNIT_SOURCES:%.c=$(BUILD)/%)
UNIT_FLAGS := -Wno-missing-prototypes -Wno-unused-parameter -Werror=unused-function
.PHONY: check-binaries test-binaries
check-binaries: $(UNIT_BINARIES)
test-binaries: check-binaries

$(UNIT)/test_%: tests/unit/test_%.c $(UNIT)/unit.o $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(UNIT_FLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# What several tests share: a GPU of made-up samples, a simulated kernel.
$(addprefix $(UNIT)/test_,measure paired measure_golden): $(UNIT)/fake_gpu.o
$(addprefix $(UNIT)/test_,rules check hypotheses): $(UNIT)/simulate.o
$(addprefix $(UNIT)/,unit.o fake_gpu.o): CFLAGS += $(UNIT_FLAGS)
# The simulated kernel and the reference are loops worth vectorising.
$(UNIT)/simulate.o $(addprefix $(BUILD)/src/check/,reference.o gradients.o scores.o): CFLAGS += -O3
# Functions that a test replaces with its own.
$(addprefix $(UNIT)/test_,measure paired measure_golden invariance): LDFLAGS += -Wl,--wrap=fa_now_s
$(UNIT)/test_spec: LDFLAGS += -Wl,--wrap=fa_registry_rules
$(UNIT)/test_check: LDFLAGS += -Wl,--wrap=fa_gpu_lock -Wl,--wrap=fa_gpu_lock_is_taken -Wl,--wrap=fa_gpu_gate_is_closed
$(UNIT)/test_check: LDFLAGS += -Wl,--wrap=fa_reference_make -Wl,--wrap=fa_compile_cuda
# Our declarations against the vendors' headers, where there are any. Ours and cuda.h cannot be read by one file.
$(UNIT)/test_cuda_abi: $(UNIT)/cuda_abi_theirs.o
$(UNIT)/cuda_abi_theirs.o $(UNIT)/test_lib_abi: \
	CPPFLAGS += $(addprefix -isystem ,$(firstword $(wildcard /usr/local/cuda/include)))
-include $(addprefix $(UNIT)/,$(addsuffix .d,fake_gpu unit simulate cuda_abi_theirs))
