# All of this runs on a fresh machine that has Python 3.11 (or newer) and make.
# Real peers (HTCondor, Slurm, Prometheus, Mosquitto, systemd, Chromium) are added if apt and root allow it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
# The first Python on the path that is new enough; set PYTHON=... to choose another.
PYTHON ?= $(firstword $(foreach python,python3 python3.14 python3.13 python3.12 python3.11,\
    $(shell $(python) -c 'import sys; sys.version_info >= (3, 11) and print("$(python)")' 2>/dev/null)))
# Folder of peers that are not installed into the system.
export OUTRIDER_PEERS ?= /var/tmp/outrider-peers
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# If it is set, every process compiles all its imports, two more seconds per daemon.
unexport PYTHONDONTWRITEBYTECODE
# `make test TESTS="tests/policies -k bandit"` runs a part.
TESTS ?=
# Processes that share the tests, a file each: most of them wait for daemons and brokers, so a
# machine of two cores has work for eight.
WORKERS ?= 8
# In CI the slowest tests and the most expensive files are listed, and a file that costs 50 % more than
# its line in tests/cpu.txt allows fails the run.
COSTS := $(if $(filter true,$(CI)),--durations=25 --durations-min=1 -p tests.suite.costs)

# Printed on stderr, so that stdout contains only a command's output.
say = @printf '== %s\n' $(1) >&2

# $(call set_up,EXTRAS): the virtual environment with the project and these extras in it.
define set_up
	$(call say,"set-up: $(VENV) with $(PYTHON)")
	@[ -n "$(PYTHON)" ] || { echo "Outrider needs Python 3.11 or newer; none is on the PATH" >&2; exit 1; }
	@$(PYTHON) tools/set_up.py $(VENV) $(1)
	@touch $@
endef

# $(call while_peers_come,TARGETS): these targets, and real peers at the same time. Peers come from apt,
# which mostly waits for the network and for one core. `make -n` also runs such a line, because it calls
# make, and then must install nothing.
DRY := $(findstring n,$(firstword -$(MAKEFLAGS)))
define while_peers_come
	@said=$$(mktemp); $(if $(DRY),true,tests/peers/install.sh) >"$$said" 2>&1 & \
	    $(MAKE) $(1) || { wait; rm -f "$$said"; exit 1; }; \
	    wait; printf '== peers\n' >&2; cat "$$said"; rm -f "$$said"
endef

help:  ## show this list
	@printf 'Outrider, a learning site scheduler. What make can do here:\n'
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

demo: $(VENV)/.runtime  ## the daemon in shadow mode alongside a simulated campus
	@$(BIN)/outrider demo

# ---- set-up ------------------------------------------------------------------

# The environment of `make demo`: the project and its dependencies, without development tools.
# Packages are those of locks/. A changed lock or pyproject.toml upgrades it in place, or creates the
# environment again: see tools/set_up.py.
$(VENV)/.runtime: pyproject.toml locks/runtime.txt locks/checkout.txt
	$(call set_up,)

# The extra `dev` on top: what tests, lint and generated files need.
$(VENV)/.ready: pyproject.toml locks/dev.txt
	$(call set_up,dev)
	@touch $(VENV)/.runtime

# Tools that build the pages as a site.
$(VENV)/.docs: $(VENV)/.ready locks/docs.txt
	@$(BIN)/pip install --quiet --no-deps --require-hashes -r locks/docs.txt
	@touch $@

# HTCondor's own Python library is measured against; it has no wheel for every machine.
$(VENV)/.htcondor: $(VENV)/.ready
	@if said=$$($(BIN)/pip install --quiet --no-deps --require-hashes -r locks/htcondor.txt 2>&1); then touch $@; \
	    else printf '  %-12s not here: %s\n' htcondor2 "$$(tail -n 1 <<<"$$said")"; fi

# Mutation testing, which puts faults into the code to see whether a test notices; no test needs it.
$(VENV)/.mutation: $(VENV)/.ready locks/mutation.txt
	@$(BIN)/pip install --quiet --no-deps --require-hashes -r locks/mutation.txt
	@touch $@

# The simulator with which bench/peers.py compares Outrider; only that bench's test needs it.
$(VENV)/.accasim: $(VENV)/.ready locks/bench.txt
	@if said=$$($(BIN)/pip install --quiet --no-deps --require-hashes -r locks/bench.txt 2>&1); then touch $@; \
	    else printf '  %-12s not here: %s\n' AccaSim "$$(tail -n 1 <<<"$$said")"; fi

peers: $(VENV)/.htcondor $(VENV)/.accasim  ## fetch real HTCondor, Slurm, Prometheus, Mosquitto, systemd, Chromium to test against
	$(call say,"peers")
	@tests/peers/install.sh

# Tools for locks and the bill of materials, in a separate environment: the tests do not need them.
$(VENV)/supply/.ready: locks/supply.txt | $(VENV)/.runtime
	@$(PYTHON) -m venv --clear $(VENV)/supply
	@$(VENV)/supply/bin/pip install --quiet --no-deps --require-hashes -r locks/supply.txt
	@touch $@

lock: $(VENV)/supply/.ready  ## pin every dependency again, with hashes, and list the licences
	$(call say,"lock")
	@$(VENV)/supply/bin/python tools/lock.py

dist: $(VENV)/.ready $(VENV)/supply/.ready  ## a release: sdist, wheel, and the bill of materials of what it installs
	$(call say,"dist")
	@$(BIN)/python -m build --no-isolation --outdir dist
	@$(VENV)/supply/bin/python tools/lock.py --bill dist/outrider.cdx.json

# `make wheelhouse EXTRAS="htcondor forecast"` for this Python;
# FOR="--python 3.11 --glibc 2.34" for a host of another release.
wheelhouse: $(VENV)/.runtime  ## a folder of wheels, build/wheelhouse, for an install without an index
	$(call say,"wheels")
	@$(BIN)/python -m tools.wheelhouse build/wheelhouse $(EXTRAS) $(FOR)

# Wheels for Debian's own Python, independent of the Python that runs here.
deb: $(VENV)/.runtime  ## a Debian package for this release and architecture, in build/deb
	$(call say,"Debian package")
	@$(BIN)/python -m tools.wheelhouse build/wheelhouse $(EXTRAS) \
	    --python "$$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
	    --glibc "$$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)"
	@$(BIN)/python -m tools.debian_package build/wheelhouse build/deb

# ---- checks ------------------------------------------------------------------

# The tests are collected once before they are distributed, which compiles them; otherwise each process
# would do that. The kernels of expected starts are compiled at the same time.
test:  ## set-up, peers where possible, every test
	$(call while_peers_come,$(VENV)/.docs $(VENV)/.htcondor $(VENV)/.accasim)
	$(call say,"tests")
	@$(if $(TESTS),,$(BIN)/python -m tests.suite.compile_once &) \
	said=$$($(BIN)/python -m pytest --collect-only -qq $(TESTS) 2>&1) || { printf '%s\n' "$$said"; exit 1; }; wait
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(COSTS) $(if $(TESTS),,-m "not alone and not long") $(TESTS)
	@$(if $(TESTS),true,$(BIN)/python -m pytest -n 2 --dist loadfile -m alone $(COSTS) $$(grep -rl --include=test_*.py "mark[.]alone" tests))

format: $(VENV)/.ready  ## write every file in the one format
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

lint: $(VENV)/.ready  ## format, style, types, layers and language, without tests
	$(call say,"format")
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --diff --quiet; exit 1; }
	$(call say,"style")
	@$(BIN)/ruff check --quiet
	$(call say,"types")
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/mypy --no-error-summary bench tests
	$(call say,"layers")
	@said=$$($(BIN)/lint-imports 2>&1) || { printf '%s\n' "$$said"; exit 1; }
	$(call say,"language")
	@$(BIN)/python -m tools.voice

check:  ## what CI asks: lint, then every test
	$(call while_peers_come,lint)
	@$(MAKE) test

check-long: $(VENV)/.ready $(VENV)/.mutation  ## what CI takes samples of: long tests, an hour of soak, the whole fuzz, faults put into the code, a fresh machine (four hours)
	@$(BIN)/python -m pytest -m long --durations=0 --durations-min=1
	@EXAMPLES_SHARE=1 $(BIN)/python -m pytest -m "hypothesis and not long"
	@$(BIN)/python -m tests.soak.run --seconds 3600
	@$(BIN)/python -m tests.fuzzing.run --events 100000 --seeds 10 fifo bandit survival
	@$(BIN)/python -m tests.fuzzing.run --events 20000
	@$(BIN)/python -m tests.mutation.run --mutants 30 --seed 1
	@tests/fresh_machine.sh

# Without bench/acting.py, which takes three hours of wall time.
bench: $(VENV)/.ready $(VENV)/.htcondor $(VENV)/.accasim  ## measure speed and memory against the budgets
	@missed=; for bench in $$(ls bench/*.py | grep -vE '/(acting|calibration|options)\.py'); do \
	    printf '== %s\n' "$$bench" >&2; $(BIN)/python "$$bench" || missed+=" $$bench"; done; \
	    [ -z "$$missed" ] || { echo "failed or over budget:$$missed" >&2; exit 1; }

docs: $(VENV)/.ready $(VENV)/.docs $(VENV)/.htcondor  ## write every page, example and dashboard that is made from the code; all pages as a site in build/site
	@$(BIN)/python -m tools.generate
	@$(BIN)/sphinx-build -c docs -q -W --keep-going -j auto . build/site
	@printf 'the site: build/site/docs/index.html\n'

start-nets: $(VENV)/.ready  ## train sarsa's shipped start nets again
	@$(BIN)/outrider train sarsa --rows 0.2,0.4,0.5 --seeds 10000-10009 --out policies/outrider_policies/sarsa/start_net.json
	@$(BIN)/outrider train sarsa --preset literal --rows 0.2,0.4,0.5 --seeds 10000-10009 --out policies/outrider_policies/sarsa/start_net_literal.json

clean:  ## remove what make made in this folder (peers stay)
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help demo peers lock dist wheelhouse deb test format lint check check-long docs bench start-nets clean
