# Two commands matter: `make demo` and `make test`. The rest is for those who work on Sluice.
PYTHON ?= python3
RECIPE ?= quick
BUDGET ?= 540
RUN := .venv/bin/python
READY := $(if $(filter .venv/%,$(RUN)),.venv/installed) # another RUN brings its own libraries: nothing is installed

.PHONY: demo test check accept campaign bench test-gpu bench-gpu first-light dev clean

demo: $(READY) ## collect to promote, then train, stop and resume
	$(RUN) -m assets.demo --recipe $(RECIPE)

test: check ## every check that needs no GPU
	$(RUN) -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not gpu and not slow" && $(RUN) -m pytest -m "slow and not gpu"

check: .venv/installed ## style, types, import contracts, light imports
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports && $(RUN) -m tests.light_imports

accept: $(READY) ## the whole system in eight ordered phases; stops at the first red
	$(RUN) -m tests.accept

campaign: $(READY) ## 200 kills of 60-step runs; each run ends in the same certificate
	$(RUN) -m tests.benchmarks kill-campaign --json

bench: $(READY) ## every figure, side by side, into docs/benchmarks.md
	$(RUN) -m tests.benchmarks --write docs/benchmarks.md

test-gpu: $(READY) ## the tests that need a GPU
	$(RUN) -m pytest -m gpu

bench-gpu: $(READY) ## operations and training steps on the GPU, row by row; again goes on at the first missing row
	$(RUN) -m kernels --json --output docs/benchmarks/kernels.jsonl --budget $$(($(BUDGET) / 2))
	$(RUN) -m trainer bench --out docs/benchmarks/training.jsonl --budget $$(($(BUDGET) / 2))

first-light: $(READY) ## the first session on a GPU, in phases: correct and repeatable before it is fast; again goes on where it stopped
	$(RUN) -m tests.first_light --budget $(BUDGET)

dev: .venv/installed ## the UI and the daemon, on localhost
	DAGSTER_HOME=$(CURDIR) exec .venv/bin/dagster dev -h 127.0.0.1 -w workspace.yaml

clean: ## everything that can be made again, except the store
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache dist build *.egg-info

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@
