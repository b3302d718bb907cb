# Everything a user or CI calls. Needs python3 (3.10 or later, with venv) and make; the rest is set up in .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
MUTANTS := .venv/.mutants
ARGS ?=

.PHONY: help env demo test test-all lint format residual-demo mode-matters delta-table bench odometry bench-gateway faults false-trips soak fuzz kill-soak power-cut latency constraints clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ —/'

env: $(STAMP)  ## create .venv with everything for demo and tests (quick when nothing changed)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "onboard needs Python 3.10 or later; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Use: make env PYTHON=python3.x"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "python3 could not make a virtual environment; install its venv module (Debian: python3-venv)"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[sim,analysis,export]' --group demo --group test --group lint
	@touch $@

demo: env  ## a trained policy walks a simulated G1 over real DDS, about a minute; ARGS="--json out.json"
	$(BIN)/onboard demo $(ARGS)

test: env  ## the test suite (under 10 minutes on 2 cores)
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-all: env  ## the same and the long suites; needs the shared policies
	ONBOARD_REQUIRE_SHARED=1 $(BIN)/python -m pytest $(ARGS)

lint: env  ## ruff and mypy, as in CI
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: env  ## let ruff rewrite the tree
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

residual-demo: env  ## record a weak simulated robot, fit the delta, judge it; ARGS="--json FILE --out DIR"
	$(BIN)/python -m benchmarks.residual_demo $(ARGS)

mode-matters: env  ## weak simulated robots, flown with their residual in every mode; ARGS="--json FILE --out DIR"
	$(BIN)/python -m benchmarks.mode_matters $(ARGS)

delta-table: env  ## sticky ankles: linear, network, by-contact and physical deltas on held-out data; ARGS="--json FILE"
	$(BIN)/python -m benchmarks.delta_table $(ARGS)

bench: env  ## cost of every stage beside the vendor's objects; ARGS="--json FILE"
	$(BIN)/python -m benchmarks $(ARGS)

bench-gateway: env  ## time from a process's death to damping, on real DDS; ARGS="--n 100 --json FILE --resume"
	$(BIN)/python -m benchmarks.gateway $(ARGS)

odometry: env  ## contact and base velocity against the simulator's truth; needs the shared policies; ARGS="--json FILE"
	$(BIN)/python -m benchmarks.odometry $(ARGS)

faults: env  ## inject every fault of the list, show how fast what follows; ARGS="--json FILE"
	$(BIN)/python -m tests.faults $(ARGS)

false-trips: env  ## walk for an hour beside two CPU hogs: is a healthy robot ever stopped? ARGS="--minutes 5 --json FILE"
	$(BIN)/python -m benchmarks.false_trips $(ARGS)

latency: env  ## does the latency check measure what the simulator is set to? on real DDS; ARGS="--lock-step --json FILE"
	$(BIN)/python -m benchmarks.latency $(ARGS)

soak: env  ## 2 h in lock-step and 30 min on real DDS: does memory grow? ARGS="--lock-step-s 600 --real-s 60 --hogs 2 --json FILE"
	$(BIN)/python -m benchmarks.soak $(ARGS)

kill-soak: env  ## processes of real runs killed at random moments: is every record there? ARGS="--n 100 --json FILE"
	$(BIN)/python -m benchmarks.kill_soak $(ARGS)

power-cut: env  ## a disk loses its power while a run is recorded: how much is lost? needs root; ARGS="--n 20 --json FILE"
	$(BIN)/python -m benchmarks.power_cut $(ARGS)

.PHONY: mutants safety-coverage
mutants: $(MUTANTS)  ## does every change of the safety code fail a test? ARGS="--only gate.py --sample 50 --json FILE"
	$(BIN)/python -m tests.mutants $(ARGS)

$(MUTANTS): $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group mutants
	@touch $@

safety-coverage: env  ## branch coverage of onboard/safety by its own tests must be 100 %
	$(BIN)/python -m coverage run --branch --source=onboard/safety --data-file=.coverage.safety -m pytest -q tests/safety $(ARGS)
	$(BIN)/python -m coverage report --data-file=.coverage.safety --show-missing --fail-under=100

fuzz: env  ## spoiled and hostile inputs of every kind; ARGS="--cases 10000 --kinds KIND... --seed N --json FILE"
	$(BIN)/python -m tests.fuzz $(ARGS)

constraints: env  ## refresh constraints.txt (host-free pins)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --all-extras --group demo --group test --group lint --group mutants --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file constraints.txt pyproject.toml

clean:  ## remove what the targets above made
	rm -rf .venv .mutants .pytest_cache .mypy_cache .ruff_cache
