# Everything a fresh machine needs is installed from here: cargo, python3 (3.11 or newer), gcc and make are enough.
# Each target says what it is doing and costs little when there is nothing to do.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What builds and checks a release has an environment of its own, so that it is ready before PyTorch is.
RELEASE := .venv-release
# MindSpore asks for other versions of packages than PyTorch.
MINDSPORE := .venv-mindspore
FUZZ_SECONDS ?= 120

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"
# Every package is pinned, with the hashes of its files, so there is nothing to resolve.
pip-install = -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r

# All that goes into the binary and the extension, scripts and styles of pages included.
SOURCES := $(shell find crates $(wildcard web) -type f -not -path '*/tests/*' -not -path '*/node_modules/*') \
	Cargo.toml Cargo.lock rust-toolchain.toml

# cargo-nextest runs the tests of all crates at the same time, and reports how long each took.
HAS_NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)
cargo-test := $(if $(HAS_NEXTEST),cargo nextest run --locked --cargo-quiet --status-level fail,cargo test --locked --quiet)
only-tensor := $(if $(HAS_NEXTEST),-E 'package(msprobe-tensor)',-p msprobe-tensor)
PYTEST := $(BIN)/python -m pytest -q -n auto --dist loadfile --ignore tests/python/mindspore
RUST_REPORT := target/nextest/default/junit.xml
PYTHON_REPORT := target/pytest.xml
MINDSPORE_REPORT := target/pytest-mindspore.xml

.PHONY: help build demo check test-fast test test-rust-half test-rust test-portable test-python test-mindspore test-install bench-mindspore \
	lint lint-rust bench fuzz audit lock wheel dist fmt clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

build: target/release/msprobe $(VENV)/.package ## The binary and a venv with the package and PyTorch

demo: build ## The main job, end to end
	$(call say,demo)
	@demo/run.sh

check: lint-rust ## Formatting, clippy and unit tests of Rust
	$(call say,rust unit tests)
	$(cargo-test) --lib --bins

test-fast: target/debug/msprobe $(VENV)/.package-test $(VENV)/.trl ## Python tests in parallel, without the slow ones
	$(call say,python tests without the slow ones)
	$(PYTEST) -m 'not slow'

# While packages are downloaded, Rust is built and tested.
test: $(VENV)/bin/python ## All tests
	@$(MAKE) --no-print-directory -j2 test-rust-half $(VENV)/.trl $(MINDSPORE)/.tools
	@$(MAKE) --no-print-directory lint test-python test-mindspore test-web test-install
	@$(BIN)/python tests/slowest.py $(RUST_REPORT) $(PYTHON_REPORT) $(MINDSPORE_REPORT)
	$(call say,all tests passed)

test-rust-half:
	@$(MAKE) --no-print-directory -j1 lint-rust test-portable test-rust target/quick-wheel/.built

lint: lint-rust $(VENV)/.tools ## Formatting, clippy, ruff, types, workflows
	$(call say,lint: ruff and mypy)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy --no-error-summary
	$(call say,lint: workflows)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet --no-progress .github/workflows

lint-rust: | $(VENV)/bin/python
	$(call say,lint: rustfmt)
	cargo fmt --all --check
	$(call say,lint: clippy)
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

test-rust: ## Unit, recorded, property and CLI tests
	$(call say,rust tests)
	$(cargo-test)

# Processors without AVX2, all of aarch64 among them, run the portable kernels.
test-portable: ## The tests of the number kernels, with vector code turned off
	$(call say,tests of the portable kernels)
	MSPROBE_SIMD=off $(cargo-test) $(only-tensor)

test-python: target/debug/msprobe $(VENV)/.package-test $(VENV)/.trl ## Python tests against real PyTorch and numpy
	$(call say,stubs of the extension module)
	$(BIN)/python -m mypy.stubtest msprobe._native --allowlist tests/python/stubtest.allow --concise
	$(call say,python tests)
	$(PYTEST) --junitxml=$(PYTHON_REPORT)

test-mindspore: target/debug/msprobe $(MINDSPORE)/.package ## Python tests against real MindSpore, in PyNative mode on CPU
	$(call say,python tests with MindSpore)
	TORCH_SITE=$(firstword $(wildcard $(CURDIR)/$(VENV)/lib/python*/site-packages)) \
	$(MINDSPORE)/bin/python -m pytest -q -n auto --dist loadfile --junitxml=$(MINDSPORE_REPORT) tests/python/mindspore

test-install: target/quick-wheel/.built ## A wheel in a clean venv of every Python that is here, without any framework
	$(call say,the wheel on every Python that is here)
	tests/install.sh target/quick-wheel/*.whl

bench: build .venv-reference/.package ## Measure ourselves and the alternatives in one run
	$(call say,bench)
	cargo build --release --locked --quiet -p msprobe-tensor --example read_bandwidth
	$(BIN)/python -m bench.run
	$(BIN)/python -m bench.collection
	$(BIN)/python -m bench.compare
	$(BIN)/python -m bench.rl
	$(BIN)/python -m bench.grad
	$(BIN)/python -m bench.two_runs
	$(BIN)/python -m bench.analyze
	$(BIN)/python -m bench.graph
	$(BIN)/python -m bench.viewer
	$(MAKE) --no-print-directory bench-mindspore

# The reference for it, if it is to be measured too, goes into .venv-mindspore-reference (numpy before 2).
bench-mindspore: build $(MINDSPORE)/.package ## What collection from MindSpore costs
	$(call say,bench: MindSpore)
	VIRTUAL_ENV=$(CURDIR)/$(MINDSPORE) $(MINDSPORE)/bin/maturin develop --release --locked --quiet
	@rm -f $(MINDSPORE)/.package $(VENV)/.package-test
	$(MINDSPORE)/bin/python -m bench.pynative

fuzz: ## Fuzz the file parsers, FUZZ_SECONDS (120) each
	$(call say,fuzz: needs a nightly toolchain)
	@cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked --quiet
	@fuzz/run.sh $(FUZZ_SECONDS)

audit: $(RELEASE)/.tools ## Licences, duplicates and sources of crates; pins and hashes of Python packages
	$(call say,audit: crates)
	@cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked --quiet
	cargo deny --all-features check bans licenses sources
	$(call say,audit: python packages)
	PATH=$(CURDIR)/$(RELEASE)/bin:$$PATH requirements/lock.sh --check

lock: $(RELEASE)/.tools ## Pin the Python packages of requirements/*.in
	PATH=$(CURDIR)/$(RELEASE)/bin:$$PATH requirements/lock.sh

maturin-build = PATH=$(CURDIR)/$(RELEASE)/bin:$$PATH maturin build --locked --quiet --zig --compatibility manylinux2014

wheel: $(RELEASE)/.tools ## dist/*.whl, for Linux with glibc 2.17 or newer and Python 3.9 or newer
	$(call say,building the wheel)
	rm -f dist/*.whl
	$(maturin-build) --release --out dist
	$(RELEASE)/bin/auditwheel show dist/*.whl
	tests/install.sh dist/*.whl
	cd dist && sha256sum msprobe* > SHA256SUMS

# As that of a release in all but speed, which takes the longest to build.
target/quick-wheel/.built: $(SOURCES) pyproject.toml | $(RELEASE)/.tools
	$(call say,building a wheel quickly)
	rm -rf $(@D)
	$(maturin-build) --profile quick-wheel --out $(@D)
	$(RELEASE)/bin/auditwheel show $(@D)/*.whl
	@touch $@

dist: wheel ## dist/: the wheel, the binary without shared libraries, checksums
	$(call say,building the static binary)
	tests/static_binary.sh dist
	cd dist && sha256sum msprobe* > SHA256SUMS

fmt: $(VENV)/.tools ## Format everything
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove everything that was built or installed
	rm -rf target fuzz/target dist web/node_modules web/.build $(VENV) $(RELEASE) $(MINDSPORE) .venv-reference demo_out bench_out python/msprobe/*.so

target/release/msprobe: $(SOURCES)
	$(call say,building target/release/msprobe)
	cargo build --release --locked --quiet --bin msprobe
	@touch $@

# The tests' binary, of the build that Rust tests have.
target/debug/msprobe: $(SOURCES)
	$(call say,building target/debug/msprobe)
	cargo build --locked --quiet --bin msprobe
	@touch $@

$(VENV)/bin/python:
	$(call say,making $(VENV))
	$(PYTHON) -m venv $(VENV)

# One pip at a time changes the environment: each of these waits for the one before.
$(VENV)/.tools: requirements/test.txt | $(VENV)/bin/python
	$(call say,installing tools: $<)
	$(BIN)/python $(pip-install) $<
	@touch $@

$(VENV)/.torch: requirements/torch.txt | $(VENV)/.tools
	$(call say,installing PyTorch (a few minutes the first time): $<)
	$(BIN)/python $(pip-install) $<
	@touch $@

$(VENV)/.trl: requirements/rl.txt | $(VENV)/.torch
	$(call say,installing TRL for its example: $<)
	$(BIN)/python $(pip-install) $<
	@touch $@

$(RELEASE)/.tools: requirements/release.txt
	$(call say,installing what a release needs into $(RELEASE): $<)
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python $(pip-install) $<
	@touch $@

# The package in the venv is either the one of a release or the one of the tests, which shares its build with the
# Rust tests and checks arithmetic.
$(VENV)/.package: $(SOURCES) pyproject.toml | $(VENV)/.torch
	$(call say,building the Python package into $(VENV))
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet
	@rm -f $@-test
	@touch $@

$(VENV)/.package-test: $(SOURCES) pyproject.toml | $(VENV)/.torch
	$(call say,building the Python package for tests into $(VENV))
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --locked --quiet
	@rm -f $(VENV)/.package
	@touch $@

$(MINDSPORE)/.tools: requirements/mindspore.txt
	$(call say,installing MindSpore into $(MINDSPORE): $<)
	test -x $(MINDSPORE)/bin/python || $(PYTHON) -m venv $(MINDSPORE)
	$(MINDSPORE)/bin/python $(pip-install) $<
	@touch $@

# Built like the package of the Python tests, so that nothing is compiled twice.
$(MINDSPORE)/.package: $(SOURCES) pyproject.toml | $(MINDSPORE)/.tools
	$(call say,building the Python package for tests into $(MINDSPORE))
	VIRTUAL_ENV=$(CURDIR)/$(MINDSPORE) $(MINDSPORE)/bin/maturin develop --locked --quiet
	@touch $@

.venv-reference/.package: requirements/reference.txt
	$(call say,installing the reference and PyTorch into .venv-reference: $<)
	$(PYTHON) -m venv .venv-reference
	.venv-reference/bin/python $(pip-install) $<
	@touch $@

# Scripts of the html pages. What is built from web/ is committed, so that only those who change it need node.
.PHONY: web lint-web fmt-web test-web
lint: lint-web
fmt: fmt-web

web: web/node_modules/.package ## Build the scripts of the html pages from web/
	$(call say,web: building crates/report/src/html/assets and crates/viewer/assets)
	cd web && npm run --silent build

lint-web: web/node_modules/.package
	$(call say,lint: web and what is built from it)
	cd web && npm run --silent lint

fmt-web: web/node_modules/.package
	cd web && npm run --silent format

test-web: target/debug/msprobe web/node_modules/.package ## Tests of the html pages in Chromium
	@command -v chromium >/dev/null || { printf '%s\n' '==> installing chromium' && apt-get update -qq && apt-get install -y chromium; }
	$(call say,web tests)
	cd web && MSPROBE_BIN=$(CURDIR)/target/debug/msprobe npm run --silent test

web/node_modules/.package: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { printf '%s\n' '==> installing node' && apt-get update -qq && apt-get install -y nodejs npm; }
	$(call say,installing node packages: web/package-lock.json)
	cd web && npm ci --loglevel=error
	@touch $@
