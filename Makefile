# Set-up, demonstration, tests and checks. `make demo` and `make test` are all a new machine needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTS := tessiq_core tessiq_cpuref tessiq_cuda tessiq_ops_contrib cli
TORCH ?= torch==2.13.0

.PHONY: setup demo test lint format docs clean

setup: $(VENV)/.ready

$(VENV)/.ready: VERSION requirements-dev.txt $(addsuffix /pyproject.toml,$(DISTS))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "$(TORCH)" -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps $(addprefix -e ./,$(DISTS))
	touch $@

demo: setup
	$(BIN)/python docs/examples/demo.py

test: setup
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror tessiq_core/csrc/*.cpp tessiq_core/csrc/*.h

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i tessiq_core/csrc/*.cpp tessiq_core/csrc/*.h

docs: setup
	$(BIN)/python -m tessiq_core.ops.coverage

clean:
	rm -rf $(VENV) build
