# Each target's line says what it does; a bare `make` lists them.
ENV ?= Pendulum-v1
ALGO ?= bisac
STEPS ?= $(if $(filter Pendulum-v1,$(ENV)),6000,1000000)
SEED ?= 0
ARGS ?=

# Another Python has a virtual environment of its own: make test PYTHON=python3.12 uses .venv-python3.12.
PYTHON ?= python3
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PEERS := .venv-peers
LOWEST := .venv-lowest
DIST := .venv-dist
DOCS := .venv-docs

INSTALL := install --quiet --disable-pip-version-check
# A file's tests share what they compile, so one worker has them all.
PYTEST := pytest -n 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help install train test test-browser test-device test-ray test-trackers test-peers test-lowest check format bench bench-acting bench-return bench-updates bench-device bench-scaling campaign docs docs-serve reference figures notebook dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/installed ## set up .venv with bisac in it

train: $(VENV)/installed ## train; ENV=Hopper-v5 ALGO=sac STEPS=100000 SEED=3 ARGS='--preset fast' say what and how
	@$(BIN)/bisac train $(ENV) --algo $(ALGO) --steps $(STEPS) --seed $(SEED) $(ARGS)

test: check ## run all checks and tests; PYTHON=python3.12 with another Python
	$(BIN)/$(PYTEST) $(ARGS)

test-browser: $(VENV)/developing ## test the report's page in an installed Chromium or Chrome
	@$(BIN)/python tests/support/browser.py
	$(BIN)/pytest -m browser $(ARGS)

test-device: $(VENV)-device/installed ## test the tasks of Brax and MuJoCo Playground, in an environment of their own
	$(VENV)-device/bin/pytest -m device $(ARGS)

test-ray: $(VENV)/developing ## test sweeps on a Ray cluster on this machine
	$(BIN)/pytest -m ray $(ARGS)

test-trackers: $(VENV)-trackers/installed ## test runs in Weights & Biases and MLflow, offline, in an environment of their own
	$(VENV)-trackers/bin/pytest -m trackers $(ARGS)

test-peers: $(PEERS)/tested ## test our policies in Stable-Baselines3's evaluation, where the peers are installed
	$(PEERS)/bin/pytest -m peers tests/policies/test_peers.py $(ARGS)

test-lowest: $(LOWEST)/installed ## run the tests with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/$(PYTEST) $(ARGS)

check: $(VENV)/developing ## check formatting, style and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(VENV)/developing ## format the code, and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/installed $(PEERS)/installed ## measure speed beside other libraries
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-acting: $(VENV)/developing $(PEERS)/installed ## measure acting on one observation beside other libraries
	$(BIN)/python benchmarks/acting.py $(ARGS)

bench-return: $(VENV)/installed $(PEERS)/installed ## measure the time to a return beside other libraries
	$(BIN)/python benchmarks/returns.py $(ARGS)

bench-updates: $(VENV)/installed ## measure the time to a return by updates a step
	$(BIN)/python benchmarks/updates.py $(ARGS)

bench-device: $(VENV)-device/installed ## measure learning on the device beside its updates alone, and many seeds
	$(VENV)-device/bin/python benchmarks/device.py $(ARGS)

bench-scaling: $(VENV)/installed ## measure how costs grow
	$(BIN)/python benchmarks/scaling.py $(ARGS)

campaign: $(VENV)/developing ## kill, crash, damage and forge runs in large; writes docs/reliability.md (two hours)
	$(BIN)/python benchmarks/reliability $(ARGS)

docs: $(DOCS)/installed reference ## build the documentation site into build/site/html; look for dead links and stale tables
	$(BIN)/python benchmarks/figures.py --check
	$(DOCS)/bin/python site/stage.py
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	$(DOCS)/bin/python site/check.py
	@echo "the site is in build/site/html: open index.html, or make docs-serve"

docs-serve: docs ## show the documentation site on http://localhost:8000; reloads when a page changes
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs serve --watch docs --watch results

reference: $(VENV)/installed ## write the generated pages of docs/reference anew
	@$(BIN)/python site/reference.py

figures: $(VENV)/installed ## draw the pictures and tables of docs/ anew from committed data; ARGS=--check tells stale ones
	$(BIN)/python benchmarks/figures.py $(ARGS)

notebook: $(VENV)/notebook ## execute examples/figures.ipynb from top to bottom, and keep its outputs
	$(BIN)/python site/notebook.py

dist: $(VENV)/developing ## build the wheel and the sdist; train with the wheel in a fresh environment
	rm -rf dist $(DIST)
	$(BIN)/python -m build
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/pip $(INSTALL) -c constraints.txt dist/*.whl
	ls $(DIST)/lib/python*/site-packages/bisac/py.typed $(DIST)/lib/python*/site-packages/bisac/report/template.html
	cd $(DIST) && bin/bisac --version && bin/bisac train Pendulum-v1 --algo sac --steps 400 --learning-starts 100 --hidden 16 --out run

clean: ## remove the virtual environments and what was built
	rm -rf .venv .venv-* build dist

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bisac needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip $(INSTALL) -c constraints.txt -e .
	@touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/pip $(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/notebook: $(VENV)/installed
	$(BIN)/pip $(INSTALL) -c constraints.txt -e '.[notebook]'
	@touch $@

$(VENV)-device/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)-device
	$(VENV)-device/bin/pip $(INSTALL) -e '.[dev,brax,playground]'
	@touch $@

$(VENV)-trackers/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-trackers
	$(VENV)-trackers/bin/pip $(INSTALL) -c constraints.txt -e '.[dev,mlflow,wandb]'
	@touch $@

$(DOCS)/installed: pyproject.toml site/constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip $(INSTALL) -c site/constraints.txt $(shell sed -n 's/^docs = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d ',')
	@touch $@

# Every lower bound as the one version allowed.
$(LOWEST)/installed: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	grep -oE '"[^"]+>=[0-9.]+"' pyproject.toml | sed -E 's/"//g; s/\[.*\]//; s/>=/==/' > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip $(INSTALL) -c $(LOWEST)/constraints.txt -e '.[dev]'
	@touch $@

# Torch first, and by itself: whatever asks for it later is content with the one that is there.
$(PEERS)/installed: benchmarks/peers-constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip $(INSTALL) torch==2.13.0
	$(PEERS)/bin/pip $(INSTALL) -c $< stable-baselines3 sbx-rl 'gymnasium[mujoco]' rejax
	@touch $@

$(PEERS)/tested: $(PEERS)/installed pyproject.toml constraints.txt
	$(PEERS)/bin/pip $(INSTALL) -c constraints.txt -e . beartype 'pytest<9.1'
	@touch $@
