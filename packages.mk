# make install, make uninstall, make portable.
.PHONY: install uninstall portable

# The program finds kernels, headers and the emulator's shims in ../share/fa_bench beside the folder of the binary.
PREFIX ?= /usr/local
DESTDIR ?=
VERSION := $(shell sed -n 's/^\#define FA_VERSION "\(.*\)"/\1/p' src/base/version.h)
SHARE := $(DESTDIR)$(PREFIX)/share
HOME_FILES = $(wildcard kernels/*.* kernels/*/* src/cuda/*.cu* src/emu/core/abi.h) \
	$(shell find examples include src/emu/include \( -name build -o -name '__*' \) -prune -o -type f -print)
install: all
	@set -e; for file in $(HOME_FILES); do install -Dm644 $$file $(SHARE)/fa_bench/$$file; done
	@install -Dm755 fa_bench $(DESTDIR)$(PREFIX)/bin/fa_bench
	@set -e; for file in $(RACE_CALLS); do install -Dm755 $$file $(SHARE)/fa_bench/$$file; done
	@set -e; mkdir -p $(BUILD); for page in man completion; do \
		scripts/house/manual.sh --$$page >$(BUILD)/fa_bench.$$page; done
	@install -Dm644 $(BUILD)/fa_bench.man $(SHARE)/man/man1/fa_bench.1
	@install -Dm644 $(BUILD)/fa_bench.completion $(SHARE)/bash-completion/completions/fa_bench
	@set -e; for file in README.md CHANGELOG.md docs/*; do install -Dm644 $$file $(SHARE)/doc/fa_bench/$$file; done
	@sed -i '1a \\nInstalled without `scripts/`, `tests/` and `evidence/`: what names them needs the source tree.' \
		$(SHARE)/doc/fa_bench/README.md $(SHARE)/doc/fa_bench/docs/*.md

uninstall:
	rm -rf $(SHARE)/fa_bench $(SHARE)/doc/fa_bench
	rm -f $(DESTDIR)$(PREFIX)/bin/fa_bench $(SHARE)/man/man1/fa_bench.1 $(SHARE)/bash-completion/completions/fa_bench

# A folder that runs on a machine without the build's packages (the binaries with their libraries beside them), and a
# tarball of it that needs nothing of this tree.
PORTABLE = fa_bench-$(VERSION)-portable
portable: all $(EMU_CASE)
	@rm -rf $(BUILD)/portable && mkdir -p $(BUILD)/portable/lib
	@cp fa_bench $(EMU_CASE) $(BUILD)/portable/
	@set -e; for l in libcjson libcrypto libgomp; do \
		cp -L "$$(ldd fa_bench | awk -v l="$$l" '$$1 ~ l {print $$3}')" $(BUILD)/portable/lib/; \
	done
	@for d in kernels include src; do ln -sfn ../../$$d $(BUILD)/portable/$$d; done
	@rm -rf $(BUILD)/$(PORTABLE) && mkdir -p $(BUILD)/$(PORTABLE)
	@cp -r $(BUILD)/portable/fa_bench $(BUILD)/portable/lib README.md CHANGELOG.md docs $(BUILD)/$(PORTABLE)/
	@set -e; for file in $(HOME_FILES); do install -Dm644 $$file $(BUILD)/$(PORTABLE)/$$file; done
	@tar -C $(BUILD) --sort=name --owner=0 --group=0 -czf $(BUILD)/$(PORTABLE).tar.gz $(PORTABLE)
	@rm -rf $(BUILD)/$(PORTABLE)
	@echo "$(BUILD)/portable $(BUILD)/$(PORTABLE).tar.gz"
