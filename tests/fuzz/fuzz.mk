# libFuzzer harnesses, where clang has its runtime. `make fuzz FUZZ_SECONDS=600`: each that long, one after the other.
.PHONY: fuzz fuzz-binaries
FUZZ_SECONDS ?= 600
FUZZ_CC ?= clang
FUZZ_NAMES := options spec log npy cubin
FUZZ_BINARIES := $(FUZZ_NAMES:%=$(BUILD)/fuzz/fuzz_%)
FUZZ_OBJECTS := $(patsubst src/%.c,$(BUILD)/fuzz/%.o,$(wildcard src/base/*.c src/input/*.c) \
	src/compile/log.c src/compile/cubin.c)
.SECONDARY: $(FUZZ_OBJECTS)
FUZZ_FLAGS := -g -O1 -std=c17 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# Where clang has the runtime, `make test-all` has the fuzzers; elsewhere they are skipped.
.PHONY: fuzz-where-possible
ifneq ($(wildcard $(shell $(FUZZ_CC) -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer*.a),)
fuzz-where-possible: fuzz-binaries
endif

fuzz: fuzz-binaries
	tests/fuzz/run.sh --seconds $(FUZZ_SECONDS)

fuzz-binaries: $(FUZZ_BINARIES)

$(BUILD)/fuzz/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,FUZZ)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/libfuzzed.a: $(FUZZ_OBJECTS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/libfuzzed.a
	@mkdir -p $(@D)
	$(call say,FUZZ)
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -Isrc $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ -lcjson -lcrypto -lm

-include $(FUZZ_OBJECTS:.o=.d)
