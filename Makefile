# Two commands for a new machine (Python >= 3.11, a C compiler and make):
#   make demo    sets everything up in .venv and cross-validates a tree on the Adult census data
#   make test    sets everything up in .venv and runs the tests
# A stamp in the environment remembers what has been done, so a second call starts at once; a
# changed kernel is compiled again, a changed pyproject.toml or setup.py is installed again.

PYTHON ?= python3
VENV ?= .venv
OLDEST := $(VENV)-oldest
PYTEST_ARGS ?=
DIST_TESTS ?=
FUZZ_ARGS ?=
DEMO_ARGS ?= examples/adult.csv.gz --target target --min-samples-leaf 20

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --no-build-isolation --editable
KERNELS := $(shell find dtrees -name '*.pyx' -o -name '*.pxd')
DEBUG_TREE := build/debug-tree
PATHS_TREE := build/paths-tree
# Neighbours stay in one process, which makes their clusters once; who is done takes over from others.
# Four, on two cores: a quarter of the time, a test waits for processes of a cluster to come or to go.
IN_PROCESSES := -n 4 --dist worksteal

# pytest rewrites the modules of tests, which takes 7 seconds in each process where none may keep the
# result.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-peers test-oldest test-long chaos golden lint format bench docs compare paths debug-test dist-test \
	build clean sanitize sanitize-short sanitize-proof poison fuzz-models fuzz-inputs
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@echo "make demo        cross-validate a tree on the Adult census data"
	@echo "make test        run the tests (PYTEST_ARGS='-k name' to choose)"
	@echo "make test-oldest the tests with the oldest packages that are supported (PYTHON=python3.11)"
	@echo "make test-long   what takes minutes and gigabytes, and 2,000 new examples of every law"
	@echo "make chaos       faults of clusters at many moments, and one hash over all layouts of a table"
	@echo "make test-peers  scikit-learn's own tests, with dtrees' classes in the place of its own"
	@echo "make golden      models, in three ways each, against the digests of tests/golden"
	@echo "make fuzz-inputs tables of all kinds into every entry point (FUZZ_ARGS='--seed 7 --cases 9000')"
	@echo "make lint        ruff, cython-lint, mypy, import-linter, codespell"
	@echo "make format      let ruff put the files in order"
	@echo "make bench       measure against scikit-learn and others"
	@echo "make compare     the same work here and at an earlier commit (BASE=..., CASES='letter adult')"
	@echo "make paths       what each special path of the kernels is worth (PATHS='few_rows bundles')"
	@echo "make docs        build the pages into build/docs"
	@echo "make debug-test  the tests once more on kernels with bounds checks"
	@echo "make sanitize    kernels that the compiler watches: memory, arithmetic, threads"
	@echo "make sanitize-proof  a planted bug for each of them, which has to be told"
	@echo "make poison      tests and models in memory that is full of one byte, then of another"
	@echo "make fuzz-models broken model files by the thousand (FUZZ_ARGS='--seed 2 --cases 500')"
	@echo "make dist-test   build sdist and wheel, and try both in empty environments"
	@echo "make build       compile what changed"
	@echo "make clean       remove what was built; .venv stays"

# With what the README's commands need: pictures for a report.
demo: $(STAMPS)/cli,plot $(STAMPS)/kernels
	$(BIN)/python -m dtrees cv $(DEMO_ARGS)

test: $(STAMPS)/test $(STAMPS)/kernels
	$(BIN)/python -m pytest $(IN_PROCESSES) $(PYTEST_ARGS)

# An environment of its own, beside .venv; the kernels are those that stand in the tree.
test-oldest: $(STAMPS)/kernels $(OLDEST)/ready
	PYTHONPATH=. $(OLDEST)/bin/python -m pytest $(IN_PROCESSES) $(PYTEST_ARGS)

$(OLDEST)/ready: tests/oldest.txt
	@$(BIN)/python -m venv --clear $(OLDEST)
	@$(OLDEST)/bin/python -m pip --disable-pip-version-check --quiet install --requirement tests/oldest.txt
	@touch $@

test-long: $(STAMPS)/test $(STAMPS)/kernels
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m "long or hypothesis" --timeout 1800 \
		$(PYTEST_ARGS)

chaos: $(STAMPS)/test $(STAMPS)/kernels
	DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD=spawn \
		$(BIN)/python -m pytest -m chaos --timeout 1800 $(PYTEST_ARGS)

# What does not pass, and why, stands in tests/peers/README.md.
test-peers: $(STAMPS)/test $(STAMPS)/kernels
	$(BIN)/python -m tests.peers

golden: $(STAMPS)/test $(STAMPS)/kernels
	$(BIN)/python -m tests.golden

fuzz-inputs: $(STAMPS)/test $(STAMPS)/kernels
	$(BIN)/python -m tests.fuzz inputs $(FUZZ_ARGS)

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(abspath $(BIN)):$$PATH" cython-lint dtrees
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell

format: $(STAMPS)/lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMPS)/bench $(STAMPS)/kernels
	$(BIN)/python -m benchmarks

# Checks BASE out into build/compare and compiles its kernels, once.
compare: $(STAMPS)/bench $(STAMPS)/kernels
	$(BIN)/python -m benchmarks.compare $(or $(BASE),$(error BASE=... names the earlier commit)) $(CASES)

docs: $(STAMPS)/docs $(STAMPS)/kernels
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

build: $(STAMPS)/kernels

# A second tree with its own kernels, so that the release build stays as it is. What runs there has
# the same environment: the tree's own folder comes first on the path.
define copy_to
	mkdir -p $(1)
	find $(1)/dtrees $(1)/tests $(1)/examples $(1)/docs $(1)/benchmarks -type f \
		! -name '*.so' -delete 2>/dev/null || true
	tar cf - --exclude='*.so' --exclude='*.c' --exclude=__pycache__ \
		dtrees tests examples docs $(wildcard benchmarks) setup.py pyproject.toml README.md \
		CHANGELOG.md CONTRIBUTING.md SECURITY.md CITATION.cff LICENSE Makefile MANIFEST.in \
		| tar xf - -C $(1)
endef

paths: $(STAMPS)/bench
	$(call copy_to,$(PATHS_TREE))
	cd $(PATHS_TREE) && DTREES_PATHS=1 $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
	cd $(PATHS_TREE) && PYTHONPATH=$(abspath $(PATHS_TREE)) \
		DTREES_DATA=$(or $(DTREES_DATA),$(abspath ../shared/data)) \
		$(abspath $(BIN))/python -m benchmarks.paths $(PATHS) \
		--output $(abspath docs/development/paths.md)

debug-test: $(STAMPS)/test
	$(call copy_to,$(DEBUG_TREE))
	if [ -d ../shared ]; then ln -sfn "$$(cd ../shared && pwd)" build/shared; fi
	cd $(DEBUG_TREE) && DTREES_DEBUG=1 $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
	cd $(DEBUG_TREE) && DTREES_DEBUG=1 PYTHONPATH=$(abspath $(DEBUG_TREE)) \
		$(abspath $(BIN))/python -m pytest $(IN_PROCESSES) $(PYTEST_ARGS)

# Trees of their own, too (tests/sanitizers/run.py). The proof plants a bug for each of them to tell.
sanitize: $(STAMPS)/test
	$(BIN)/python -m tests.sanitizers.run memory
	$(BIN)/python -m tests.sanitizers.run threads

sanitize-short: $(STAMPS)/test
	$(BIN)/python -m tests.sanitizers.run memory --short
	$(BIN)/python -m tests.sanitizers.run threads --short

sanitize-proof: $(STAMPS)/test
	$(BIN)/python -m tests.sanitizers.run memory --prove
	$(BIN)/python -m tests.sanitizers.run threads --prove

poison: $(STAMPS)/test $(STAMPS)/kernels
	$(BIN)/python -m tests.poison.run $(PYTEST_ARGS)

fuzz-models: $(STAMPS)/test $(STAMPS)/kernels
	$(BIN)/python -m tests.fuzz.model_files --keep build/fuzz $(or $(FUZZ_ARGS),--seed 1 --cases 5000)

# DIST_TESTS: which of the sdist's own tests are run, for example DIST_TESTS=tests for all.
dist-test: $(STAMPS)/tools
	$(PIP) install build
	.ci/dist-test $(abspath $(BIN))/python $(DIST_TESTS)

clean:
	rm -rf build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find dtrees -name '*.so' -delete
	rm -f $(STAMPS)/*

$(STAMPS)/tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dtrees needs Python >= 3.11")'
	@echo "setting up $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@$(PIP) install --upgrade pip "setuptools>=77" "cython>=3.1" "numpy>=2.0"
	@touch $@

# The package itself, and its kernels. These are then as new as when it began: what has changed
# meanwhile is compiled by the next rule but one.
$(STAMPS)/package: $(STAMPS)/tools pyproject.toml setup.py
	@echo "installing dtrees: compiles the kernels, which takes about three minutes on two cores"
	@touch $(STAMPS)/kernels.began
	@$(INSTALL) .
	@mv $(STAMPS)/kernels.began $(STAMPS)/kernels
	@touch $@

# What extras of pyproject.toml need, one or several. The package is there, and is not built again.
$(STAMPS)/%: $(STAMPS)/package
	@echo "installing what dask-dtrees[$*] needs"
	@$(PIP) install 'dask-dtrees[$*]'
	@touch $@

$(STAMPS)/kernels: $(STAMPS)/tools setup.py $(KERNELS)
	@echo "compiling what changed"
	@touch $@.began
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@mv $@.began $@
