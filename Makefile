# textgen: one non-recursive Makefile. `make help` lists the targets; V=1 shows the commands.
#
#   make run     install what is missing, build, train a small model, show the result
#   make test    install what is missing, build, run every test that needs nothing but this repository

.DEFAULT_GOAL := all
SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

# ---- settings a user may change ---------------------------------------------------------------
PREFIX   ?= /usr/local
CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
CFLAGS   ?= -O2 -g
WERROR   ?=
SANITIZE ?=
BUILD    ?= build$(if $(SANITIZE),/$(SANITIZE))
JOBS     ?= $(shell nproc)
V        ?=

# Parallel by default: a two-command start should not depend on the user knowing -j.
ifeq ($(MAKELEVEL)$(filter -j% --jobserver%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(JOBS)
endif

Q := $(if $(V),,@)
say = @printf '  %-8s %s\n' '$(1)' '$(2)'
ifdef V
say = @:
endif

# ---- what is installed from Debian ------------------------------------------------------------
DEB_BUILD := gcc libc6-dev make pkg-config protobuf-c-compiler protobuf-compiler
DEB_LIBS  := libzmq3-dev libprotobuf-c-dev libuv1-dev libopenblas-dev libyaml-dev libjansson-dev \
             libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev libsnappy-dev libcurl4-openssl-dev
DEB_DATA  := wordnet-base
DEB_TESTS := procps jq
DEBS      := $(DEB_BUILD) $(DEB_LIBS) $(DEB_DATA) $(DEB_TESTS)
PKGS      := libzmq libprotobuf-c libuv openblas yaml-0.1 jansson libpcre2-8 libutf8proc zlib libzstd snappy libcurl

# Expanded in recipes, that is after `deps` has run.
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   = $(shell pkg-config --libs $(PKGS) 2>/dev/null)

# ---- flags ------------------------------------------------------------------------------------
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
        -Wwrite-strings -Wdouble-promotion -Wimplicit-fallthrough -Wundef $(if $(WERROR)$(CI),-Werror)
VERSION := 0.1.0
CPPFLAGS_ALL = -D_GNU_SOURCE -DTG_VERSION='"$(VERSION)"' -I. -I$(BUILD)/gen
SAN_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer $(if $(findstring undefined,$(SANITIZE)),-fno-sanitize-recover=undefined))
CFLAGS_ALL = -std=c11 $(CFLAGS) -fno-math-errno $(WARN) $(SAN_FLAGS) -pthread
LDLIBS_ALL = $(PKG_LIBS) -pthread -ldl -lm
# The fast kernels may fuse multiply and add and vectorise loops marked `omp simd`; never -ffast-math.
# clang says so when it cannot vectorise one of those loops; that costs time, not correctness.
NN_CPU_FLAGS := -O3 -ffp-contract=fast -fopenmp-simd -fno-trapping-math -Wno-pass-failed
# Their inner loops are compiled once for each instruction set; the choice is made when the program runs.
# The machine, not the compiler, is asked: at the first run the compiler is not installed yet.
NN_ISAS := plain $(if $(findstring x86_64,$(shell uname -m)),avx2 avx512)
# prfchw: what is fetched to be written comes as the core's own; the first processors with AVX2 (before Broadwell) take it for nothing.
NN_ISA_FLAGS_avx2   := -DTG_ISA_AVX2 -mavx2 -mfma -mprfchw
NN_ISA_FLAGS_avx512 := -DTG_ISA_AVX512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprfchw -mprefer-vector-width=512

# ---- sources ----------------------------------------------------------------------------------
find_c = $(sort $(shell find $(1) -name '*.c' 2>/dev/null))
SRC_KERNELS := $(call find_c,common/nn/cpu/kernels)
SRC_COMMON  := $(filter-out common/cli/% $(SRC_KERNELS),$(call find_c,common)) $(call find_c,proto)
SRC_CLI     := $(call find_c,common/cli)
SRC_ENV     := $(filter-out env-server/plugin/%,$(call find_c,env-server))
SRC_LEARNER := $(call find_c,learner)
HEADERS     := $(sort $(shell find common proto env-server learner -name '*.h' 2>/dev/null))
GEN         := $(BUILD)/gen/proto/textgen.pb-c

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
OBJ_KERNELS := $(foreach isa,$(NN_ISAS),$(patsubst %.c,$(BUILD)/obj/$(isa)/%.o,$(SRC_KERNELS)))
OBJ_COMMON  := $(call obj,$(SRC_COMMON)) $(OBJ_KERNELS) $(BUILD)/obj/gen/textgen.pb-c.o
OBJ_CLI     := $(call obj,$(filter-out %/main.c,$(SRC_CLI)))
OBJ_ENV     := $(call obj,$(filter-out %/main.c,$(SRC_ENV)))
OBJ_LEARNER := $(call obj,$(filter-out learner/main.c,$(SRC_LEARNER)))

SRC_UNIT  := $(wildcard tests/unit/test_*.c)
SRC_TOOLS := $(wildcard tests/tools/*.c)
SRC_OPS   := $(wildcard tests/ops/*.c)
SRC_FUZZ  := $(wildcard tests/fuzz/fuzz_*.c)
SRC_BENCH := $(wildcard tests/bench/bench_*.c)
SRC_PLUGIN := $(wildcard env-server/plugin/*.c tests/plugin/*.c)
SRC_SUPPORT := $(wildcard tests/support/*.c)
TEST_LIBS  := $(BUILD)/libsupport.a $(BUILD)/libcli.a $(BUILD)/libenv.a $(BUILD)/liblearner.a $(BUILD)/libcommon.a
UNIT_BINS  := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(SRC_UNIT))
TOOL_BINS  := $(patsubst tests/tools/%.c,$(BUILD)/tests/%,$(SRC_TOOLS))
FUZZ_BINS  := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(SRC_FUZZ))
BENCH_BINS := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(SRC_BENCH))
PLUGINS    := $(patsubst %.c,$(BUILD)/plugin/%.so,$(notdir $(SRC_PLUGIN)))
OPS_BIN    := $(if $(SRC_OPS),$(BUILD)/tests/tg-ops)

BINS := $(BUILD)/textgen $(if $(wildcard env-server/main.c),$(BUILD)/textgen-env) \
        $(BUILD)/textgen-broker $(if $(wildcard learner/main.c),$(BUILD)/textgen-learner)

# ---- building ---------------------------------------------------------------------------------
all: $(BINS) ## Build everything
	@$(MAKE) --no-print-directory -s summary
.PHONY: all

$(BUILD)/textgen: $(call obj,common/cli/main.c) $(BUILD)/libcli.a $(BUILD)/libcommon.a
$(BUILD)/textgen-env: $(call obj,env-server/main.c) $(BUILD)/libenv.a $(BUILD)/libcommon.a
$(BUILD)/textgen-broker: $(call obj,env-server/broker/main.c) $(BUILD)/libenv.a $(BUILD)/libcommon.a
$(BUILD)/textgen-learner: $(call obj,learner/main.c) $(BUILD)/liblearner.a $(BUILD)/libcommon.a
$(BINS):
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(BUILD)/libcommon.a: $(OBJ_COMMON)
$(BUILD)/libcli.a: $(OBJ_CLI)
$(BUILD)/libenv.a: $(OBJ_ENV)
$(BUILD)/liblearner.a: $(OBJ_LEARNER)
$(BUILD)/libsupport.a: $(call obj,$(SRC_SUPPORT))
$(BUILD)/lib%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar qcs $@ $^

$(BUILD)/obj/%.o: %.c $(BUILD)/.deps | $(GEN).h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(PKG_CFLAGS) $(CFLAGS_ALL) $(if $(filter common/nn/cpu/%,$<),$(NN_CPU_FLAGS)) -MMD -MP -c -o $@ $<

define kernel_rule
$(BUILD)/obj/$(1)/common/nn/cpu/kernels/%.o: common/nn/cpu/kernels/%.c $(BUILD)/.deps
	@mkdir -p $$(@D)
	$$(call say,CC,$$< [$(1)])
	$$(Q)$$(CC) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$(NN_CPU_FLAGS) $$(NN_ISA_FLAGS_$(1)) \
	  $$(if $$(filter %/adamw.c %/sgd_rmsprop.c,$$<),-ffp-contract=off) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(NN_ISAS),$(eval $(call kernel_rule,$(isa))))

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/proto/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(PKG_CFLAGS) $(CFLAGS_ALL) -w -MMD -MP -c -o $@ $<

$(GEN).h: proto/textgen.proto $(BUILD)/.deps
	@mkdir -p $(@D)
	$(call say,PROTOC,$<)
	$(Q)protoc-c --c_out=$(BUILD)/gen proto/textgen.proto
$(GEN).c: $(GEN).h ;

# What /metrics says of the build; one object is compiled again when it changes.
COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null)
$(BUILD)/gen/common/net/commit.h: FORCE
	@mkdir -p $(@D)
	@line='#define TG_COMMIT "$(or $(COMMIT),unknown)"'; [ "$$(cat $@ 2>/dev/null)" = "$$line" ] || echo "$$line" >$@
$(BUILD)/obj/common/net/ops.o: $(BUILD)/gen/common/net/commit.h
FORCE: ;

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---- dependencies -----------------------------------------------------------------------------
# The tests use a browser where there is one; nothing else does, and it is large.
deps-browser: ## Install Chromium from Debian, for the tests of pages
	$(Q)$(MAKE) --no-print-directory -s deps DEBS=chromium
deps: ## Install every Debian package needed (root or sudo); nothing to do when all are there
	@missing=""; for p in $(DEBS); do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
	  echo "deps: not a Debian system; please install the equivalents of:$$missing" >&2; exit 69; fi; \
	sudo=""; if [ "$$(id -u)" != 0 ]; then \
	  command -v sudo >/dev/null || { echo "deps: needs root or sudo to install:$$missing" >&2; exit 77; }; sudo=sudo; fi; \
	echo "deps: installing from Debian:$$missing"; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/tmp/textgen-deps.$$$$ 2>&1 \
	  || { cat /tmp/textgen-deps.$$$$ >&2; rm -f /tmp/textgen-deps.$$$$; exit 69; }; rm -f /tmp/textgen-deps.$$$$

# The stamp makes every object wait for the packages, and re-checks them when this file changes.
$(BUILD)/.deps: Makefile
	@mkdir -p $(@D)
	@$(MAKE) --no-print-directory -s deps
	@touch $@

summary: ## Show what was detected
	@ok() { printf '  \033[32m✓\033[0m %s\n' "$$1"; }; no() { printf '  \033[33m✗\033[0m %s\n' "$$1"; }; \
	[ -t 1 ] || { ok() { printf '  ✓ %s\n' "$$1"; }; no() { printf '  ✗ %s\n' "$$1"; }; }; \
	for p in libzmq libuv libprotobuf-c openblas; do \
	  if v=$$(pkg-config --modversion $$p 2>/dev/null); then ok "$$p $$v"; else no "$$p (run: make deps)"; fi; done; \
	if command -v nvcc >/dev/null; then ok "nvcc $$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') (no CUDA kernels in this version: CPU build)"; \
	else no "nvcc not found: CPU build"; fi; \
	if command -v mpirun >/dev/null; then ok "MPI $$(mpirun --version 2>/dev/null | sed -n '1s/.* //p')"; else no "MPI not found: one learner process"; fi; \
	printf '  built %s: try  make run  or  %s/textgen --help\n' "$(BUILD)" "$(BUILD)"

# ---- running ----------------------------------------------------------------------------------
RUN_CONFIG ?= configs/increasing_numbers.yml
run: all ## Train the built-in model with PPO for about two minutes and show what it learnt (RUN_CONFIG=…)
	$(Q)$(BUILD)/textgen train $(RUN_CONFIG) --workers 2

TINY := build/tiny
tiny-model: all ## Make the built-in model again: text, tokenizer, supervised training, configs/models/tiny
	$(Q)rm -rf $(TINY) && mkdir -p $(TINY)
	$(Q)$(BUILD)/textgen gentext --seed 1 --lines 40000 --out $(TINY)/train.jsonl
	$(Q)$(BUILD)/textgen gentext --seed 2 --lines 128 --out $(TINY)/val.jsonl
	$(Q)$(BUILD)/textgen gentext --seed 3 --lines 128 --out $(TINY)/test.jsonl
	$(Q)$(BUILD)/textgen tokenizer train --out $(TINY)/tokenizer --vocab-size 768 --max-length 128 $(TINY)/train.jsonl
	$(Q)$(BUILD)/textgen train configs/tiny_model.yml --run-dir $(TINY)/run --workers 1
	$(Q)rm -rf configs/models/tiny && mkdir -p configs/models && cp -r $(TINY)/run/model configs/models/tiny

# ---- tests ------------------------------------------------------------------------------------
$(UNIT_BINS): $(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(TEST_LIBS)
$(TOOL_BINS): $(BUILD)/tests/%: $(BUILD)/obj/tests/tools/%.o $(TEST_LIBS)
$(FUZZ_BINS): $(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(TEST_LIBS)
$(BENCH_BINS): $(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(TEST_LIBS)
$(OPS_BIN): $(call obj,$(SRC_OPS)) $(TEST_LIBS)
$(UNIT_BINS) $(TOOL_BINS) $(FUZZ_BINS) $(BENCH_BINS) $(OPS_BIN):
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(BUILD)/plugin/%.so: env-server/plugin/%.c env-server/plugin/textgen_reward.h $(BUILD)/.deps
	@mkdir -p $(@D)
	$(call say,PLUGIN,$@)
	$(Q)$(CC) $(filter-out -fsanitize=%,$(CFLAGS_ALL)) -shared -fPIC -Ienv-server/plugin -o $@ $<
$(BUILD)/plugin/%.so: tests/plugin/%.c env-server/plugin/textgen_reward.h $(BUILD)/.deps
	@mkdir -p $(@D)
	$(call say,PLUGIN,$@)
	$(Q)$(CC) $(filter-out -fsanitize=%,$(CFLAGS_ALL)) -shared -fPIC -Ienv-server/plugin -o $@ $<
plugins: $(PLUGINS) ## Build the example of a reward plug-in, and those of the tests
$(BUILD)/tests/unit/test_external $(BUILD)/tests/unit/test_plugin $(BUILD)/tests/fuzz/fuzz_reward_plugin: | $(PLUGINS)
$(BUILD)/tests/unit/test_external $(BUILD)/tests/unit/test_step_rewards: | $(BUILD)/tests/reward-child

tests: $(BINS) $(PLUGINS) $(UNIT_BINS) $(TOOL_BINS) $(FUZZ_BINS) $(OPS_BIN) ## Build the tests without running them

RUNNER = BUILD=$(BUILD) SANITIZE=$(SANITIZE) tests/run.sh
INTEGRATION := $(sort $(wildcard tests/integration/*.sh))
LEARNING    := $(sort $(wildcard tests/learning/*.sh))
CHAOS       := $(sort $(wildcard tests/chaos/*.sh))

test: tests checks ## Every test that needs nothing but this repository
	$(Q)$(RUNNER) $(UNIT_BINS) $(if $(OPS_BIN),"$(OPS_BIN) test" "$(OPS_BIN) grad") $(FUZZ_BINS) $(INTEGRATION) $(CHAOS) $(LEARNING)
test-unit: tests ## Unit and golden tests only
	$(Q)$(RUNNER) $(UNIT_BINS)
test-ops: tests ## Op-level comparison and gradient checks only
	$(Q)$(RUNNER) $(if $(OPS_BIN),"$(OPS_BIN) test" "$(OPS_BIN) grad")
test-integration: tests ## Real processes on real sockets
	$(Q)$(RUNNER) $(INTEGRATION)
THREADED := base endpoint ipc link resume recovery fleet pool server curve ops security text tokenizer_use encode backend collect collect_groups halt score external remote plugin http_reward
test-threads: tests ## What runs on several threads: what make tsan looks at
	$(Q)$(RUNNER) $(foreach t,$(THREADED),$(BUILD)/tests/unit/test_$(t)) "$(OPS_BIN) test -o matmul" tests/integration/env_server.sh tests/integration/broker.sh
test-chaos: tests ## Faults: kills, stalls, partitions, spoiled messages; a minute
	$(Q)$(RUNNER) $(CHAOS)
chaos: tests ## The same at the figures of a release: hours
	$(Q)CHAOS_LONG=1 TEXTGEN_TEST_TIMEOUT=$${TEXTGEN_TEST_TIMEOUT:-100000} $(RUNNER) $(CHAOS)
test-learning: tests ## Runs that must reach a reward
	$(Q)$(RUNNER) $(LEARNING)
test-oracle: tests ## Compare again, on random inputs, with torch, transformers, tokenizers, SB3 … from PyPI
	$(Q)BUILD=$(BUILD) tests/oracle/run.sh
	$(Q)BUILD=$(BUILD) tests/python/run.sh
test-python: $(BINS) ## The Python client with gymnasium, SB3 and sb3-contrib from PyPI
	$(Q)BUILD=$(BUILD) tests/python/run.sh
bench: all $(BENCH_BINS) $(OPS_BIN) $(BUILD)/tests/bench-table ## Speed beside the machine's limit and the peers; JSON in build/bench
	$(Q)BUILD=$(BUILD) tests/bench/run.sh

asan: ## The test suite under AddressSanitizer (and LeakSanitizer)
	$(Q)$(MAKE) --no-print-directory SANITIZE=address CFLAGS="-O1 -g" test
ubsan: ## The test suite under UndefinedBehaviorSanitizer
	$(Q)$(MAKE) --no-print-directory SANITIZE=undefined CFLAGS="-O1 -g" test
tsan: ## The concurrent tests under ThreadSanitizer
	$(Q)$(MAKE) --no-print-directory SANITIZE=thread CFLAGS="-O1 -g" test-threads
fuzz: ## Fuzz every parser with libFuzzer (needs clang; FUZZ_SECONDS=60 each)
	$(Q)BUILD=$(BUILD) tests/fuzz/run.sh

# ---- checks -----------------------------------------------------------------------------------
checks: check-headers check-deps check-size ## Header self-containment, dependency directions, file sizes
check-headers: $(GEN).h
	$(call say,CHECK,headers compile alone)
	$(Q)flags="$(CPPFLAGS_ALL) $(PKG_CFLAGS)"; printf '%s\n' $(HEADERS) | \
	  xargs -P $(JOBS) -I{} sh -c '$(CC) -std=c11 -fsyntax-only -Wall -Werror -x c '"$$flags"' {} || { echo "not self-contained: {}" >&2; exit 255; }'
check-deps:
	$(call say,CHECK,dependency directions)
	$(Q)tests/check-deps.sh
check-size:
	$(call say,CHECK,file sizes)
	$(Q)tests/check-size.sh
# What cppcheck 2.10 does not understand: results through pointers, jansson's loops, shifts of vectors, sums of at least one term. gcc and
# clang-tidy look for the first two as well.
CPPCHECK_MISTAKES := uninitvar legacyUninitvar unknownMacro shiftTooManyBitsSigned invalidFunctionArg
# Quoted for the shell inside the shell that runs it.
LINT_FLAGS = -std=c11 -D_GNU_SOURCE -DTG_VERSION=\"$(VERSION)\" -I. -I$(BUILD)/gen $(PKG_CFLAGS)
lint: $(GEN).h $(BUILD)/gen/common/net/commit.h ## clang-tidy and cppcheck
	$(Q)printf '%s\n' $(SRC_COMMON) $(SRC_CLI) $(SRC_ENV) $(SRC_LEARNER) | \
	  xargs -P $(JOBS) -n 4 sh -c 'clang-tidy --quiet "$$@" -- $(LINT_FLAGS)' sh
	$(Q)cppcheck --quiet --enable=warning,portability --inline-suppr --error-exitcode=1 $(CPPCHECK_MISTAKES:%=--suppress=%) -I. -I$(BUILD)/gen common env-server learner proto
FORMATTED := $(SRC_COMMON) $(SRC_KERNELS) $(SRC_CLI) $(SRC_ENV) $(SRC_LEARNER) $(HEADERS) $(wildcard tests/*/*.c tests/*/*.h)
format: ## Format all C files
	$(Q)clang-format -i $(FORMATTED)
format-check: ## Fail when a file is not formatted
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

# ---- the rest ---------------------------------------------------------------------------------
install: all ## Copy the binaries, the built-in model, configs and units below PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/textgen
	install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin
	cp -r configs deploy README.md LICENSE $(DESTDIR)$(PREFIX)/share/textgen/
clean: ## Remove everything that was built
	$(Q)rm -rf build
help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 20

.PHONY: FORCE plugins deps deps-browser summary run tiny-model tests test test-unit test-ops test-integration test-threads test-chaos chaos test-learning test-oracle test-python bench asan ubsan \
        tsan fuzz checks check-headers check-deps check-size lint format format-check install clean help
