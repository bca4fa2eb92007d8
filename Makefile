# SPDX-License-Identifier: MIT
# The usual commands. Meson and ninja do the work: see meson.build. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 30
FIGURES ?=
CURVES ?=

C_FILES = $(shell find src include tests bench examples -name '*.[ch]' 2>/dev/null)

.PHONY: all setup run demo-hosts test bench figures asan clang fuzz soak curves portable test-peers format install uninstall deb clean help

all: setup build/build.ninja ## build everything into build/
	ninja -C build

setup: ## install the packages that building needs, if any is missing
	@tools/setup build

build/build.ninja: | setup
	CC=$${CC:-gcc} meson setup build

run: all ## build, bring up 64 virtual nodes, run parallel programs on them, take them away
	tools/showcase

demo-hosts: all ## as root: machines out of namespaces, a cluster on them by ssh, and away again
	@tools/setup hosts
	tools/demo-hosts

test: ## run the whole suite: gcc, clang, sanitizers, other processors
	@tools/setup test fabric portable package
	@tools/test

bench: all ## measure launches, throughput and the primitives on this machine
	build/storm bench launch
	build/storm bench throughput
	build/storm bench primitives
	build/storm bench idle
	build/storm bench primitives --sim

figures: all ## measure everything that is promised, also beside Hydra and SLURM; FIGURES=--quick for a look
	@tools/setup peers || echo "what is missing is left out"
	@bench/figures $(FIGURES)

curves: all ## draw the figures of docs/transfers-simulated.md again, in virtual time
	@bench/curves $(CURVES)

asan: ## run the suite with address and undefined-behaviour sanitizers
	@tools/setup test
	@tools/test asan-all

clang: ## build with clang, run the suite
	@tools/setup test
	@tools/test clang

portable: ## run the logic's tests on x86-64 and s390x, under emulation
	@tools/setup portable
	@tools/test portable

fuzz: ## fuzz each target for FUZZ_SECONDS (30) seconds
	@tools/setup test
	test -e build-fuzz/build.ninja || CC=clang meson setup build-fuzz -Dfuzz=true
	ninja -C build-fuzz
	@set -e; for target in build-fuzz/*_fuzz; do \
		name=$$(basename "$$target" _fuzz); corpus=tests/fuzz/corpus/$$name; \
		test -d "$$corpus" || corpus=; \
		mkdir -p build-fuzz/corpus/$$name; \
		echo "== $$name: $(FUZZ_SECONDS) s; new inputs go to build-fuzz/corpus/$$name"; \
		$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 \
			-verbosity=0 -artifact_prefix=build-fuzz/$$name- build-fuzz/corpus/$$name $$corpus; \
	done

soak: all ## long campaigns: simulated clusters, and real ones under fire
	tests/soak.sh

test-peers: all ## run the same workloads on other resource managers
	@tools/setup peers
	@set -e; for script in tests/peers/*.sh; do "$$script"; done

format: ## lay the C files out with clang-format
	@tools/setup test
	clang-format -i $(C_FILES)

install: all ## install below DESTDIR and PREFIX (/usr/local)
	@tools/install build "$(if $(DESTDIR),$(abspath $(DESTDIR)))" "$(abspath $(PREFIX))"

uninstall: all ## take away what was installed there
	@tools/install --uninstall build "$(if $(DESTDIR),$(abspath $(DESTDIR)))" "$(abspath $(PREFIX))"

deb: all ## make a Debian package, build/storm_VERSION_ARCHITECTURE.deb
	@tools/setup package
	@tools/deb build

clean: ## remove all build folders
	rm -rf build build-*

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '%-16s %s\n' "make $$name" "$$text"; done
