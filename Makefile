# make demo    check a few real programs: interpreter against C, bit by bit; a page of one of them
# make test    everything that CI runs
# make test-thorough   also the cases that `make test` leaves out of tests with many (20 minutes)
# make test-fast   those of them that take little: 70 seconds, 100 the first time
# make check   ruff, mypy, and the commit messages since the last tag
# make hooks   have git refuse commit messages that break a rule of CONTRIBUTING.md
# make site    the documentation as a site, in site/
# make gpu-check    generated CUDA on the first GPU, eight minutes at a time (docs/gpu.md)
# make gpu-bundle   what that takes, in a file, for a machine without a network
# make prove FUNCTION=exponential   an elementary function against mpmath, every input (minutes)
#
# Needs python3 (3.11 or newer) with venv, and a C compiler for everything about C.

PYTHON ?= python3
BIN := .venv/bin
COMPILER := $(shell for c in "$(HLO_CC)" gcc clang cc; do \
	command -v "$$c" >/dev/null 2>&1 && { echo "$$c"; break; }; done)
WITHOUT_C := $(if $(COMPILER),,--no-c)

# The tests run two at a time, so threads of BLAS and OpenMP must not wait for each other busily.
RUN_TESTS := OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/pytest -n 2 --maxschedchunk 4

# Python keeps the modules that it compiles, even where the environment says not to: the tests start
# hundreds of processes, and each takes 0.24 s less.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-thorough test-fast check checked imports hooks site gpu-check gpu-bundle prove compiler

demo: .venv/installed compiler
	$(BIN)/hlo check $(WITHOUT_C) examples
	@echo "To look at one of them, open this in a browser:"
	@$(BIN)/hlo $(if $(COMPILER),explain,graph) examples/attention.hlo $(if $(COMPILER),--html,-o) demo.html

test: checked
	$(RUN_TESTS)

test-thorough: checked
	$(RUN_TESTS) --thorough

test-fast: .venv/installed-for-tests
	$(RUN_TESTS) -m "not slow"

check: .venv/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m selftest.commit_titles

checked: compiler
	@$(MAKE) --no-print-directory --jobs=2 check imports

# Compiles the modules of the tests, which each process of pytest would do for itself otherwise, while
# mypy, of one thread, checks them. What is wrong with one is told when the tests run.
imports: .venv/installed-for-tests
	@$(BIN)/pytest --collect-only --quiet >/dev/null 2>&1 || true

site: .venv/installed-for-tests
	$(BIN)/mkdocs build --strict --quiet

hooks:
	git config core.hooksPath .githooks

gpu-check: .venv/installed-for-gpu
	$(BIN)/python -m selftest.gpu.check --write docs/gpu.md

gpu-bundle: .venv/installed-for-gpu
	$(BIN)/python -m selftest.gpu.bundle

prove: .venv/installed-for-tests
	$(BIN)/python -m selftest.prove $(FUNCTION)

compiler:
	@if [ -z "$(COMPILER)" ]; then \
		echo "No C compiler found (HLO_CC, gcc, clang, cc): everything about C is left out."; \
		echo "To check it too: apt install gcc"; \
	fi

.venv/installed: .venv/pip pyproject.toml
	$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/installed-for-tests: .venv/pip pyproject.toml
	$(BIN)/pip install --quiet --editable '.[test,jax,pjrt,distributed,dev,docs]'
	@touch $@ .venv/installed

# NVRTC compiles where there is no nvcc.
.venv/installed-for-gpu: .venv/installed
	@command -v nvcc >/dev/null || $(BIN)/pip install --quiet --editable '.[gpu]'
	@touch $@

.venv/pip:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "$(PYTHON) is missing: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; choose one with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv is missing: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@
