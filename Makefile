# The chores. Each prepares the machine first (scripts/bootstrap), so any of them may come first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export HOME ?= $(shell getent passwd $$(id -u) | cut -d: -f6)
# In halves of processors (cmake/Module.cmake): tests that mostly wait run beside each other.
export CTEST_PARALLEL_LEVEL ?= $(shell expr 2 \* $$(nproc))

.PHONY: demo test test-release soak check build scale bench bench-agentd bench-cluster format clean coverage tidy help

demo: ## Show everything on this machine: provider, controller, sandboxes, a build and a terminal in one, crashes, clean-up (KEEP=1 leaves it running)
	@scripts/bootstrap demo
	@scripts/build release
	@scripts/demo

test: ## Build with sanitizers and run every test; the threaded ones under ThreadSanitizer too
	@scripts/test

soak: ## Break the chain to a sandbox in every way for MINUTES (10), and carry gibibytes and 100,000 files through it; not in CI
	@scripts/bootstrap test
	@scripts/build release
	@SANDFLEET_BIN=$(CURDIR)/build/release/bin SANDFLEET_CHAOS_EVERYWHERE=1 python3 -B tests/chaos/cuts.py a_cut_at_any_frame_costs_nothing
	@SANDFLEET_BIN=$(CURDIR)/build/release/bin SANDFLEET_SOAK_MINUTES=$${MINUTES:-10} python3 -B tests/chaos/soak.py

test-release: ## Run the suites of several programs against those that ship (SUITES='integration|clients': their names' beginnings)
	@scripts/bootstrap test
	@scripts/test-release

check: ## Format, lint and drift of what you changed (ALL=1: of everything)
	@scripts/bootstrap
	@scripts/check

build: ## Build the programs, release, into build/release/bin
	@scripts/bootstrap
	@scripts/build release

bench: ## Measure create→Ready and print it beside the bar (docs/benchmarks.md)
	@scripts/bootstrap
	@scripts/build release
	@bench/run

bench-agentd: ## Measure work in a sandbox through agentd, beside raw echoes and E2B's SDKs (docs/benchmarks.md)
	@scripts/bootstrap test
	@scripts/build release
	@bench/agentd

bench-cluster: ## Measure controllers in a cluster with 1,000 sandboxes (N=10000 for more; docs/benchmarks.md)
	@scripts/bootstrap test
	@scripts/kubernetes wait >/dev/null
	@scripts/build release
	@bench/cluster --sandboxes $${N:-1000}

scale: ## Let 1,000 harnesses work through one agentd, and more than it takes come (docs/benchmarks.md)
	@scripts/bootstrap test
	@scripts/build release
	@bench/harnesses

format: ## Let clang-format lay out the code
	@scripts/bootstrap
	@git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

tidy: ## Build everything with clang-tidy at its side (slow; `make check` looks at what changed)
	@scripts/bootstrap test
	@scripts/build tidy

coverage: ## Run the tests with source coverage; the report is build/coverage/report.txt
	@scripts/bootstrap test
	@scripts/coverage

clean: ## Remove build/ (the caches under ~/.cache/sandfleet stay)
	@rm -rf build

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
