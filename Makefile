# Every target sets up what it needs; `make demo` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt --editable

.PHONY: setup demo test results docs lint format clean

setup: $(STAMP)

# What a user needs, and what a developer needs besides: the first is quick.
$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[plot]'
	@touch $(RUNS)

$(STAMP): $(RUNS)
	$(INSTALL) '.[dev,plot,ann,report,docs,ray,sweep]'
	@touch $(STAMP)

# The main job on a generated graph: leaves runs/demo/figure.png and results.md.
demo: $(RUNS)
	$(BIN)/ecg-gnn run --jobs 2 --out runs/demo
	@echo "Picture: runs/demo/figure.png   Table: runs/demo/results.md"

# A process per core, each with one thread.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

# Tables, figures, the report and the pages that quote them, from results/records.jsonl.
results: setup
	$(BIN)/python results/make.py

# The user guide, into site/; a warning is an error, and nothing comes from a network.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) runs build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
