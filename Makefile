# fa_bench: `make run` and `make test` do everything, missing packages included (scripts/setup.sh).
# `make help` lists more.
.PHONY: all help run setup code-hashes report clean
.DEFAULT_GOAL := all

CC ?= gcc
BUILD ?= build
SAN ?=
CPPFLAGS += -D_GNU_SOURCE -I. -Isrc -Iinclude
CFLAGS ?= -O2 -g
CFLAGS += -std=c17 -Wall -Wextra -Wshadow -Wmissing-prototypes -Wno-format-zero-length -Wno-missing-field-initializers
CFLAGS += -Werror=incompatible-pointer-types -Werror=int-conversion -fopenmp -MMD -MP
LDFLAGS += -rdynamic -fopenmp -Wl,-rpath,'$$ORIGIN/lib'
LDLIBS += -lcjson -lcrypto -ldl -lm -lpthread
ifneq ($(SAN),)
CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SAN)
endif

# One line per step; V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1) $@")

SOURCES := $(wildcard src/*.c src/*/*.c src/*/*/*.c)
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
LIB_OBJECTS := $(filter-out $(BUILD)/src/main.o,$(OBJECTS))

# --race loads a plugin into g++, where g++ has the headers for it (Debian: gcc-12-plugin-dev).
GCC_PLUGIN ?= $(shell g++ -print-file-name=plugin)/include
RACE_CALLS := $(if $(wildcard $(GCC_PLUGIN)/gcc-plugin.h),build/race_calls-$(shell g++ -dumpfullversion).so)

all: fa_bench $(RACE_CALLS)

help:
	@echo "make              build ./fa_bench"
	@echo "make run          install what is missing, build, run: on a GPU if there is one, on the emulator if not"
	@echo "make setup        install the packages that the tests need"
	@echo "make check        half a minute: house rules, unit tests, one kernel on the emulator"
	@echo "make test         minutes: every suite but what is slow; needs no GPU"
	@echo "make test-all     what make test leaves out: every schedule and sanitizer, mutants, fuzzers, slow tests"
	@echo "make test-asan    the suites with the driver under AddressSanitizer, UBSan and LeakSanitizer"
	@echo "make fuzz         the fuzzers, FUZZ_SECONDS=600 each"
	@echo "make code-hashes  the machine code of every configuration that the rules select, as hashes; no GPU"
	@echo "make report       pages, pictures and the documents' tables from evidence/"
	@echo "make install      PREFIX=/usr/local DESTDIR=: the program with its kernels, man page and completion"
	@echo "make uninstall    removes what make install put there"
	@echo "make portable     build/portable and a tarball of it: the program with its libraries, for any machine"
	@echo "make clean        remove what was built"

fa_bench: $(OBJECTS)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

build/race_calls-%.so: src/emu/race/calls.cc
	@mkdir -p $(@D)
	$(call say,CXX )
	$(Q)g++ -O2 -shared -fPIC -fno-rtti -isystem $(GCC_PLUGIN) -o $@ $< || echo "--race does without it: docs/emulator.md"

# The commit a record was made from; rewritten only when it changes.
$(BUILD)/git_version.h: FORCE
	@mkdir -p $(@D)
	@v=$$(git describe --always --abbrev=12 2>/dev/null || echo unknown); \
	 git diff --quiet HEAD -- kernels include src scripts Makefile 2>/dev/null || [ $$v = unknown ] || v=$$v-dirty; \
	 printf '#define FA_GIT "%s"\n' "$$v" | cmp -s - $@ || printf '#define FA_GIT "%s"\n' "$$v" >$@
FORCE:
$(BUILD)/src/report/provenance.o: $(BUILD)/git_version.h
$(BUILD)/src/report/provenance.o: CPPFLAGS += -I$(BUILD)

# The machine code of every configuration that the rules select, as hashes; no GPU. Compare two outputs with diff.
code-hashes: all
	@scripts/house/code_hashes.sh

setup:
	@scripts/setup.sh

run:
	@scripts/setup.sh run
	@$(MAKE) --no-print-directory -j$$(nproc) all
	./fa_bench

# Pages, pictures and tables from what lies in evidence/; measures nothing.
report: all
	@scripts/evidence/report.sh
	@scripts/evidence/evidence_index.sh

include tests/tests.mk
include packages.mk

-include $(OBJECTS:.o=.d)

clean:
	rm -rf $(BUILD) fa_bench
