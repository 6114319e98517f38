# The two commands are `make run` and `make test`; each sets up what it needs.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
JOBS ?= 2
# Percent of the lines that the fast suite runs in its own process; a little under what was last measured.
FLOOR := 90

.DEFAULT_GOAL := help
.PHONY: help setup run demo web test coverage explore mutate check test-faults test-system test-page test-runtimes test-matrix bench docs format clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml scripts/setup
	@scripts/setup $(VENV)
	@touch $@

setup: $(STAMP) ## Make the virtual environment

run: $(STAMP) ## The page, with the demonstrations and the recorded sessions; asks whether to show yours
	@$(BIN)/python scripts/page

demo: $(STAMP) ## Play the café, kill it half-way, resume it, and look at who heard what
	@$(BIN)/python examples/show.py

test: $(STAMP) ## The whole fast suite
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# From 3.12 on Python itself can say which lines ran, at next to no cost; before, the suite takes half as long again.
CORE = $(shell $(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')

coverage: $(STAMP) ## The fast suite, and how many of the lines it runs
	COVERAGE_CORE=$(CORE) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov --cov-report= --cov-fail-under=$(FLOOR)

explore: $(STAMP) ## The fast suite with new random examples, in search of what the usual ones do not find
	HARKEN_EXPLORE=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

mutate: $(STAMP) ## A million session documents, changed at random: validator and repairer answer each
	HARKEN_EXPLORE=1 HARKEN_MUTATIONS=1000000 $(BIN)/python -m pytest -n $(JOBS) -o timeout=0 tests/std/test_repair_laws.py

check: $(STAMP) ## Format, lint, strict types, documents in step with the code, short ways through it
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" scripts/docs --check
	$(BIN)/python scripts/walk --check
	scripts/web --check

test-faults: $(STAMP) ## Kill, EIO and ENOSPC at every write-path system call
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m faults

test-system: $(STAMP) ## An export in a real browser, the watch under a real systemd
	scripts/system
	$(BIN)/python -m pytest -m system tests/system

test-page: $(STAMP) ## The page in a real Chromium
	scripts/system
	scripts/web --check
	$(BIN)/python -m pytest -m page tests/page

web: ## Make what is shipped of the page from its sources
	scripts/web

test-runtimes: $(STAMP) ## The real programs against a scripted model on loopback
	scripts/runtimes
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m runtimes

test-matrix: $(STAMP) ## Every program's conversation in every other; writes the table in docs/MATRIX.md
	scripts/runtimes
	scripts/matrix

bench: $(STAMP) ## Measure against peers and limits; prints the tables kept in docs/BENCHMARKS.md
	$(BIN)/python benchmarks/run.py

docs: $(STAMP) ## Fill the generated parts of the documents
	PATH="$(abspath $(BIN)):$$PATH" scripts/docs

format: $(STAMP) ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove what the other targets made
	rm -rf $(VENV) .tools .tools-more .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
