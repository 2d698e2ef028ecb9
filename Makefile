# The commands of the project. `make` lists them with the text behind `##`.

SHELL := /usr/bin/env bash
CARGO ?= cargo
# One set of flags for every build of tests: other flags would compile everything again.
TEST_FLAGS := --locked --workspace --features duly-cli/planted-bugs

.DEFAULT_GOAL := help
.PHONY: help dev build sbom check test quick soak bench bench-peers bench-page bench-page-tool chaos \
        services cluster \
        check-fmt check-clippy check-docs check-licences need-cargo

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

dev: build ## Build and start API and workers on http://127.0.0.1:8080 (ARGS='--listen 127.0.0.1:0')
	@exec target/release/duly dev $(ARGS)

build: need-cargo ## Build the binary: target/release/duly
	@$(CARGO) build --locked --release -p duly-cli

sbom: need-cargo ## List the crates of the binary, with versions, checksums and licences: target/sbom/duly.cdx.json
	@$(CARGO) run --locked --quiet -p duly-testkit --bin sbom -- target/sbom/duly.cdx.json
	@echo "written: target/sbom/duly.cdx.json" >&2

services: build ## Start a private PostgreSQL, and say how to use and stop it
	@scripts/services start && scripts/services hint

cluster: build ## Start three nodes of duly serve on a private PostgreSQL; Ctrl-C stops them
	@exec scripts/cluster target/release/duly

check: check-fmt check-clippy check-docs check-licences ## Format, lints, documentation, licences

test: need-cargo ## Everything that CI runs, with a table of stores and a table of times
	@scripts/test

quick: need-cargo ## Unit tests, memory and SQLite conformance, house rules: for the inner loop
	@scripts/test quick

soak: need-cargo ## Long searches and measurements: planted bugs under chaos, long histories, scaling
	@scripts/test soak

RESULTS := bench/results

bench: build bench-page-tool ## Measure this machine and write docs/benchmarks.md (PARTS='sqlite queries postgres held'; ARGS='--only rest' for a look)
ifdef ARGS
	@target/release/duly bench --store sqlite:target $(ARGS)
else
	@code=0; scripts/bench $(PARTS) || code=$$?; $(MAKE) -s bench-page && exit $$code
endif

bench-peers: build bench-page-tool ## Measure other schedulers and ours in one run (ARGS='--only duly,bullmq')
	@bench/peers/run $(ARGS) && $(if $(ARGS),true,$(MAKE) -s bench-page)

bench-page: bench-page-tool
	@target/release/bench_report $(RESULTS) docs && echo "written: docs/benchmarks.md" >&2

bench-page-tool: need-cargo
	@$(CARGO) build --locked --release -p duly-testkit --bin bench_report

MINUTES ?= 5
NODES ?= 1
# More of them leave room for fewer single tasks.
WORKFLOWS ?= $$((60 * $(MINUTES)))
CHAOS := target/chaos
# Clean runs reach about twice of this. A single node acknowledges less: its disk is full or it is down for
# a third of the time.
AT_LEAST_1 = --min-acked $$((4000 * $(MINUTES))) --min-delayed-starts $$((800 * $(MINUTES))) \
           --min-kills $$((20 * $(MINUTES))) --min-pauses $$((6 * $(MINUTES))) --min-refusals $$((6 * $(MINUTES))) \
           --min-resets $$((10 * $(MINUTES))) --min-disk-full $(MINUTES)
# Many nodes are cut off from their database for up to 10 s at a time.
AT_LEAST_MANY = --min-acked $$((6000 * $(MINUTES))) --min-delayed-starts $$((800 * $(MINUTES))) \
           --min-kills $$((4 * $(MINUTES))) --min-pauses $$((3 * $(MINUTES))) --min-leader-kills $(MINUTES) \
           --min-database-restarts $(MINUTES) --min-terminations $(MINUTES) --min-cuts $(MINUTES) \
           --min-resets $$((4 * $(MINUTES))) --min-refusals $(MINUTES)

chaos: need-cargo ## Break a real server and its workers for MINUTES=5 and judge the run (SEED=…, NODES=3, WORKFLOWS=2000)
	@$(CARGO) build --locked --release -p duly-cli -p duly-testkit
	@$(if $(filter 1,$(NODES)),true,scripts/services install)
	@target/release/chaos --duly target/release/duly --folder $(CHAOS) --nodes $(NODES) \
	    --seconds $$((60 * $(MINUTES))) --workflows $(WORKFLOWS) $(if $(SEED),--seed $(SEED))
	@target/release/judge $(CHAOS) --min-workflows $(WORKFLOWS) \
	    $(if $(filter 1,$(NODES)),$(AT_LEAST_1),$(AT_LEAST_MANY))

# The parts of `make check`; scripts/test runs them too.

check-fmt: need-cargo
	@$(CARGO) fmt --all --check

check-clippy: need-cargo
	@$(CARGO) clippy --locked --keep-going --workspace --all-targets --all-features -- -D warnings

check-docs: need-cargo
	@RUSTDOCFLAGS="$$RUSTDOCFLAGS -D warnings" $(CARGO) doc --locked --workspace --all-features --no-deps

# The advisories need a database that is not reachable everywhere, so they are not asked for here.
check-licences: need-cargo
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny --locked check licenses bans sources; \
	else \
	    echo "cargo-deny is not installed (cargo install --locked cargo-deny); a test judges by deny.toml instead"; \
	    $(CARGO) test $(TEST_FLAGS) --test house licences; \
	fi

need-cargo:
	@command -v $(CARGO) >/dev/null || { \
	    echo "cargo is missing: install Rust with rustup, then run this again" >&2; exit 1; }
	@command -v cc >/dev/null || { \
	    echo "cc is missing: SQLite is built from source; install a C compiler (Debian: apt-get install gcc), then run this again" >&2; exit 1; }
