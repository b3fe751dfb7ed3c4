# Everything a fresh machine needs is installed from here: cargo, python3, gcc and make are enough.
# Each target says what it is doing and costs little when there is nothing to do.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_SECONDS ?= 120

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock rust-toolchain.toml

.PHONY: help build demo test test-rust test-python test-install lint bench fuzz fmt clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

build: target/release/msprobe $(VENV)/.package ## The binary and a venv with the package and PyTorch

demo: build ## The main job, end to end
	$(call say,demo)
	@demo/run.sh

test: lint test-rust test-python test-install ## All tests
	$(call say,all tests passed)

lint: $(VENV)/.tools ## Formatting, clippy, ruff, types
	$(call say,lint: rustfmt)
	cargo fmt --all --check
	$(call say,lint: clippy)
	PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(call say,lint: ruff and mypy)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy --no-error-summary

test-rust: ## Unit, recorded, property and CLI tests
	$(call say,rust tests)
	cargo test --locked --quiet

test-python: build $(VENV)/.trl ## Python tests against real PyTorch and numpy
	$(call say,python tests)
	$(BIN)/python -m pytest -q

test-install: $(VENV)/.tools ## pip install into a clean venv, without any framework
	$(call say,pip install into a clean venv)
	tests/install.sh $(PYTHON)

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

fuzz: ## Fuzz the file parsers, FUZZ_SECONDS (120) each
	$(call say,fuzz: needs a nightly toolchain)
	@cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked --quiet
	@fuzz/run.sh $(FUZZ_SECONDS)

fmt: $(VENV)/.tools ## Format everything
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove everything that was built or installed
	rm -rf target fuzz/target web/node_modules web/.build $(VENV) .venv-reference demo_out bench_out python/msprobe/*.so

target/release/msprobe: $(RUST_SOURCES)
	$(call say,building target/release/msprobe)
	cargo build --release --locked --quiet --bin msprobe
	@touch $@

$(VENV)/bin/python:
	$(call say,making $(VENV))
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tools: requirements/build.txt requirements/test.txt | $(VENV)/bin/python
	$(call say,installing tools: requirements/test.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@touch $@

$(VENV)/.torch: requirements/torch.txt | $(VENV)/bin/python
	$(call say,installing PyTorch (a few minutes the first time): requirements/torch.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/torch.txt
	@touch $@

$(VENV)/.trl: requirements/rl.txt | $(VENV)/.torch
	$(call say,installing TRL for its example: requirements/rl.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/rl.txt
	@touch $@

$(VENV)/.package: $(RUST_SOURCES) pyproject.toml README.md | $(VENV)/.tools $(VENV)/.torch
	$(call say,building the Python package into $(VENV))
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

.venv-reference/.package: requirements/reference.txt requirements/torch.txt
	$(call say,installing the reference and PyTorch into .venv-reference: requirements/reference.txt)
	$(PYTHON) -m venv .venv-reference
	.venv-reference/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/reference.txt
	@touch $@

# Scripts of the html pages. What is built from web/ is committed, so that only those who change it need node.
.PHONY: web lint-web fmt-web test-web
lint: lint-web
fmt: fmt-web
test: test-web

web: web/node_modules/.package ## Build the scripts of the html pages from web/
	$(call say,web: building crates/report/src/html/assets)
	cd web && npm run --silent build

lint-web: web/node_modules/.package
	$(call say,lint: web and what is built from it)
	cd web && npm run --silent lint

fmt-web: web/node_modules/.package
	cd web && npm run --silent format

test-web: target/release/msprobe web/node_modules/.package ## Tests of the html pages in Chromium
	@command -v chromium >/dev/null || { printf '%s\n' '==> installing chromium' && apt-get install -y chromium; }
	$(call say,web tests)
	cd web && npm run --silent test

web/node_modules/.package: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { printf '%s\n' '==> installing node' && apt-get install -y nodejs npm; }
	$(call say,installing node packages: web/package-lock.json)
	cd web && npm ci --loglevel=error
	@touch $@
