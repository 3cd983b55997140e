# Every target sets up what it needs; `make demo` and `make test` are the two to know.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt --editable

.PHONY: setup demo test test-slow chaos results docs lint format package clean

setup: $(STAMP)

# What a user needs, and what a developer needs besides: the first is quick.
$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[plot]'
	@touch $(RUNS)

$(STAMP): $(RUNS)
	$(INSTALL) '.[dev,plot,ann,report,docs,ray,sweep]'
	@touch $(STAMP)

# The method with all its controls on two generated graphs, and one picture of both.
DEMO := $(BIN)/ecg-gnn run --preset quick --steps 100 --jobs 2
demo: $(RUNS)
	$(DEMO) --dataset look-alikes:nodes=1000 --model sage --embedding features --out runs/demo/look-alikes
	$(DEMO) --dataset minesweeper-gen --model gcn --embedding mlp --out runs/demo/minesweeper
	$(BIN)/python docs/tools/two_answers.py runs/demo/look-alikes runs/demo/minesweeper --out runs/demo/figure.png
	@echo "The look-alikes were generated so that new edges help; the Minesweeper board was not."
	@echo "Picture: runs/demo/figure.png   Tables: runs/demo/*/results.md"

# A process per core, each with one thread.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile
test: setup
	$(TEST)

# The rest: kernels for GPUs in an interpreter, a cluster, malformed files, long walks.
test-slow: setup
	$(TEST) -m slow

# Attacks at random moments, in twenty minutes at most; see docs/reliability.md.
chaos: setup
	$(BIN)/python tests/chaos $(ATTACKS)

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

# A wheel and a source archive in dist/, with a page that a package index can show.
package:
	$(PYTHON) -m venv build/packaging
	build/packaging/bin/pip install --quiet --disable-pip-version-check build twine
	rm -rf dist
	build/packaging/bin/python -m build --outdir dist
	build/packaging/bin/twine check --strict dist/*

clean:
	rm -rf $(VENV) runs build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
