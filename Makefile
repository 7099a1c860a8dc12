# fa_bench: `make run` and `make test` do everything, missing packages included (scripts/setup.sh).
.PHONY: all run test setup code-hashes portable check check-size check-includes check-shell report clean
.DEFAULT_GOAL := all

CC ?= gcc
BUILD ?= build
SAN ?=
CPPFLAGS += -D_GNU_SOURCE -I. -Isrc -Iinclude
CFLAGS ?= -O2 -g
CFLAGS += -std=c17 -Wall -Wextra -Wshadow -Wmissing-prototypes -Wno-format-zero-length -Wno-missing-field-initializers -fopenmp -MMD -MP
LDFLAGS += -rdynamic -fopenmp -Wl,-rpath,'$$ORIGIN/lib'
LDLIBS += -lcjson -lcrypto -ldl -lm -lpthread
ifneq ($(SAN),)
CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SAN)
endif

# One line per step; V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1) $@")

SOURCES := $(wildcard src/*.c src/*/*.c)
ASSEMBLY := $(wildcard src/*/*.S)
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(ASSEMBLY:%.S=$(BUILD)/%.o)
LIB_OBJECTS := $(filter-out $(BUILD)/src/main.o,$(OBJECTS))

all: fa_bench

fa_bench: $(OBJECTS)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.S
	@mkdir -p $(@D)
	$(call say,AS  )
	$(Q)$(CC) $(CPPFLAGS) -c -o $@ $<

# The commit a record was made from; rewritten only when it changes.
$(BUILD)/git_version.h: FORCE
	@mkdir -p $(@D)
	@v=$$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown); \
	 printf '#define FA_GIT "%s"\n' "$$v" | cmp -s - $@ || printf '#define FA_GIT "%s"\n' "$$v" >$@
FORCE:
$(BUILD)/src/report/json.o: $(BUILD)/git_version.h
$(BUILD)/src/report/json.o: CPPFLAGS += -I$(BUILD)

# The machine code of every configuration that the rules select, as hashes; no GPU. Compare two outputs with diff.
code-hashes: all
	@scripts/code_hashes.sh

setup:
	@scripts/setup.sh

run:
	@scripts/setup.sh run
	@$(MAKE) --no-print-directory -j$$(nproc) all
	./fa_bench

# Pages, pictures and tables from what lies in evidence/; measures nothing.
report: all
	@scripts/report.sh

include tests/tests.mk

-include $(OBJECTS:.o=.d)

clean:
	rm -rf $(BUILD) fa_bench
