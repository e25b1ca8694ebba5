# make run      everything on this machine: installs, sets up, starts; Ctrl-C stops it
# make test     installs what the tests need and runs them
#
# make setup    the first half of `make run`
# make lint     style, types, import contracts
# make audit    asks a vulnerability service about every installed package
# make bench    measures this machine and writes docs/benchmarks.md
# make bench-live     many microphones and readers at once: docs/benchmarks-live.md (OPTIONS=)
# make bench-engine   the streaming engine with NeMo models: docs/benchmarks-engine.md
# make bench-failover   kill -9 of each process under live streams: docs/benchmarks-failover.md
#
# PORT=8000     port of the site               LAN=1           https for the local network
# DATA=var      where everything is kept       CERT= KEY=      a certificate of your own (PEM)
# PYTHON=       a Python 3.11 to use

PORT ?=
DATA ?=
LAN ?=
CERT ?=
KEY ?=
PYTHON ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --progress-bar off

ifneq ($(DATA),)
export TRANSCRIBE_DATA_DIR := $(abspath $(DATA))
endif
ifneq ($(PORT),)
export TRANSCRIBE_PORT := $(PORT)
endif
# For what reads the settings before `make setup` has made a key. It signs nothing.
KEYLESS := TRANSCRIBE_DATA_DIR="$(CURDIR)/var" TRANSCRIBE_SECRET_KEY=unused
SUPERVISE_OPTIONS := $(if $(filter-out 0,$(LAN)),--lan) \
	$(if $(CERT),--certificate "$(CERT)") $(if $(KEY),--key "$(KEY)")

.PHONY: help run setup test lint audit bench bench-engine bench-live bench-failover test-postgres chromium models
.DEFAULT_GOAL := help

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

run: setup
	@$(BIN)/python -m webapp.supervise $(SUPERVISE_OPTIONS)

setup: $(VENV)/.run-installed
	@$(BIN)/python -m webapp.setup

# Two processes, one of which mostly waits for voices (`tests/conftest.py`); one thread in each.
test: $(VENV)/.all-installed chromium models
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-postgres: $(VENV)/.all-installed
	@$(BIN)/python -m tests.postgres tests/transcription tests/webapp

lint: $(VENV)/.all-installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(KEYLESS) $(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

# On a closed network it says that nothing was audited, and goes on.
audit: $(VENV)/.all-installed
	@$(BIN)/python -m tests.dependencies

bench: $(VENV)/.all-installed models
	@$(BIN)/python -m tests.load.bench

# One thread: what is measured is a core's work.
bench-engine: $(VENV)/.all-installed models
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.load.bench_engine --page docs/benchmarks-engine.md

bench-failover: $(VENV)/.all-installed
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.load.failover --page docs/benchmarks-failover.md

# Half an hour; more with OPTIONS="--soak-hours 4 --peer whisper-live" (see its --help).
bench-live: $(VENV)/.all-installed
	@$(BIN)/python -m tests.load.bench_live $(OPTIONS)

# The speech models that the tests need, in the default store.
models: $(VENV)/.run-installed
	@$(KEYLESS) $(BIN)/python manage.py models fetch

chromium:
	@if ! command -v chromium >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then \
	  if [ "$$(id -u)" = 0 ]; then root=; else root="sudo -n"; fi; \
	  echo "Installing Chromium for the browser tests."; \
	  { $$root apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive $$root apt-get install -y -qq --no-install-recommends chromium; \
	  } >/dev/null || echo "Chromium could not be installed: the browser tests are skipped."; \
	fi

$(BIN)/python:
	@for candidate in $(PYTHON) python3.11 python3 /usr/bin/python3.11 /usr/local/bin/python3.11; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then \
	    found=$$candidate; break; \
	  fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "Python 3.11 is missing: install it (Debian 12: apt install python3 python3-venv) or name one with PYTHON=." >&2; \
	  exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "Python's venv module is missing: install it (apt install python3-venv)." >&2; \
	  exit 1; \
	fi; \
	"$$found" -m venv $(VENV)

$(VENV)/.run-installed: requirements/web.txt requirements/engine.txt | $(BIN)/python
	@echo "Installing the server's packages into $(VENV) (some minutes the first time)."
	@$(PIP_INSTALL) -r requirements/web.txt -r requirements/engine.txt
	@touch $@

$(VENV)/.all-installed: requirements.txt requirements/nemo.txt requirements/dev.txt $(VENV)/.run-installed
	@echo "Installing what the tests and the GPU road need into $(VENV) (2 GB the first time)."
	@$(PIP_INSTALL) -r requirements.txt -r requirements/dev.txt
	@touch $@
