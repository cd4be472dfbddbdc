# Two commands matter: `make demo` and `make test`. The rest is for those who work on Sluice.
PYTHON ?= python3
RECIPE ?= quick
PORT ?= 3000
BUDGET ?= 540
RUN := .venv/bin/python
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(len(os.sched_getaffinity(0)), 3) + 1)')# one more than cores: tests wait
PYTEST = $(RUN) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
export PYTHONDONTWRITEBYTECODE = # tests start hundreds of processes, of which each would compile the packages again
READY := $(if $(filter .venv/%,$(RUN)),.venv/installed) # another RUN brings its own libraries: nothing is installed
OLDEST := $(shell sed -n 's/^requires-python = ">=\([0-9.]*\)"$$/\1/p' pyproject.toml)
is_new = -c 'import sys; sys.exit(sys.version_info < tuple(map(int, "$(OLDEST)".split("."))))'

LEARNED := --set tokenize.vocabulary=tiny-1024 --set tokenize.row_length=256 --set verify.min_bytes_per_token=1.5

.PHONY: demo learn showcase test quick check accept campaign mutations bench test-gpu bench-gpu bench-gpu-dry first-light peers consumers cluster-tests dev clean

demo: $(READY) ## collect to promote, then train, stop and resume
	$(RUN) -m assets.demo --recipe $(RECIPE)

showcase: $(READY) ## the demo's checkpoint, trained for a minute and a half more, and five completions, judged; after `make demo`
	$(RUN) -m tests.tools.learning.showcase --recipe $(RECIPE)

learn: $(READY) ## the tiny hybrid beside itself without each layer and a plain transformer, three seeds, into docs/model.md; continues
	$(RUN) -m pipeline build --recipe quick $(LEARNED) --corpus learn --promote --reason "tokens of a small vocabulary have fewer bytes"
	$(RUN) -m tests.tools.learning.learn --write docs/model.md

test: check ## every check that needs no GPU
	$(PYTEST) -m "not gpu and not campaign"

quick: $(READY) ## the tests of a minute: none starts a process, a compiler or a training session
	$(PYTEST) -m quick

check: .venv/installed ## style, types, import contracts, light imports
	.venv/bin/ruff check . && .venv/bin/ruff check -q --preview --select PLW1514 pipeline trainer kernels assets && .venv/bin/ruff format --check .
	(.venv/bin/mypy & types=$$!; .venv/bin/lint-imports && $(RUN) -m tests.tools.light_imports; status=$$?; wait $$types && exit $$status)

accept: $(READY) ## the whole system in eight ordered phases; stops at the first red
	$(RUN) -m tests.tools.accept

campaign: $(READY) ## 200 kills of 60-step runs, each ending in the same certificate; 30 of builds; every damage of every kind of file; a large source with a fault in each kind of part; properties by examples that no run had; compiled and distributed trainings that are killed
	SLUICE_KILLS=30 SLUICE_DAMAGES=all $(RUN) -m pytest -q tests/faults/test_build_crash.py tests/faults/test_damaged_store.py
	$(RUN) -m tests.tools.shard_campaign
	SLUICE_DRAW_ANEW=1 $(PYTEST) -m "not gpu and not slow" tests/pipeline tests/trainer
	$(PYTEST) -m campaign
	$(RUN) -m tests.benchmarks kill-campaign --json

mutations: $(READY) ## plant every fault and print which gate, canary or test saw it, into docs/mutations.md; continues
	$(RUN) -m tests.mutations --write docs/mutations.md

bench: $(READY) ## every figure, side by side, into docs/benchmarks.md
	$(RUN) -m tests.benchmarks --write docs/benchmarks.md

peers: .venv/installed ## the projects that `make bench` compares with, each pinned in an environment of its own below .peers
	$(RUN) -m tests.tools.other_environments peers

consumers: .venv/installed ## the projects that read exports and loaders, each in an environment of its own; runs their tests there
	$(RUN) -m tests.tools.other_environments consumers

cluster-tests: .venv/installed ## Ray, buckets, PostgreSQL and the services of deploy/, as processes of this machine, each in an environment of its own
	$(RUN) -m tests.tools.other_environments clusters

test-gpu: $(READY) ## the tests that need a GPU
	$(RUN) -m pytest -m gpu

# Both halves take half of the budget; one that fails does not stop the other, or the table.
# $(1) folder of the rows, $(2) and $(3) the arguments of each half.
define bench_gpu
	(status=0; \
	test -d build/bench/refs || $(RUN) -m pipeline build --recipe tiny --store build/bench >&2 || status=1; \
	made=$$(test -d build/bench/refs && echo --store build/bench); \
	$(RUN) -m kernels --json --output $(1)/kernels.jsonl --budget $$(($(BUDGET) / 2)) $(2) || status=1; \
	$(RUN) -m trainer bench $$made --out $(1)/training.jsonl --budget $$(($(BUDGET) / 2)) $(3) || status=1; \
	exit $$status)
endef

bench-gpu: $(READY) ## operations and training on the GPU, row by row; a second run continues at the first missing row
	$(call bench_gpu,docs/benchmarks); status=$$?; \
	$(RUN) -m tests.benchmarks.trainer.on_gpu --write docs/benchmarks.md && exit $$status

bench-gpu-dry: export CUDA_VISIBLE_DEVICES =
bench-gpu-dry: $(READY) ## the same two halves without a GPU, tiny: rows marked dry in build/dry, minutes on two cores
	mkdir -p build/dry
	$(call bench_gpu,build/dry,--interpret,--dry-run)

first-light: $(READY) ## the first session on a GPU, in phases: correct and repeatable before it is fast; a second run continues where the first stopped
	$(RUN) -m tests.tools.first_light --budget $(BUDGET)

dev: .venv/installed ## the UI and the daemon, on localhost
	DAGSTER_HOME=$(CURDIR) exec $(RUN) -m assets.web --port $(PORT)

clean: ## everything that can be made again, except the store
	rm -rf .venv .peers .consumers .clusters .mypy_cache .ruff_cache .import_linter_cache dist build *.egg-info

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) $(is_new) || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1); Sluice needs Python $(OLDEST) or newer: add PYTHON=python$(OLDEST)" >&2; exit 1; }
	@.venv/bin/python $(is_new) 2> /dev/null || rm -rf .venv # one of an older Python, or half made
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@
