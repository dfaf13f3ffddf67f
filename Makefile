# The two commands a newcomer needs: `make train` and `make test`.
ENV ?= Pendulum-v1
ALGO ?= bisac
STEPS ?= $(if $(filter Pendulum-v1,$(ENV)),6000,1000000)
SEED ?= 0
ARGS ?=

PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin

.PHONY: train test check bench bench-return bench-scaling install clean

train: $(VENV)/installed
	@$(BIN)/bisac train $(ENV) --algo $(ALGO) --steps $(STEPS) --seed $(SEED) $(ARGS)

test: check
	$(BIN)/pytest -n 2 --dist loadgroup

check: $(VENV)/developing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright

bench: $(VENV)/installed $(PEERS)/installed
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-return: $(VENV)/installed $(PEERS)/installed
	$(BIN)/python benchmarks/returns.py $(ARGS)

bench-scaling: $(VENV)/installed
	$(BIN)/python benchmarks/scaling.py $(ARGS)

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bisac needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# Torch first, and by itself: whatever asks for it later is content with the one that is there.
$(PEERS)/installed: benchmarks/peers-constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -c $< stable-baselines3 sbx-rl 'gymnasium[mujoco]' rejax
	@touch $@

$(VENV)/developing: $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS)
