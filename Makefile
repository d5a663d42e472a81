# make demo    replays a real stream through the command and prints clusters and rules
# make demo-kafka  two workers on a broker, one is killed; Apache Kafka where Java and Maven are
# make test    the tests, without the slow ones
# make check   lint, format, types
# make docs    the documentation, in docs/_build/html
# make pictures  those of the documentation, drawn anew; needs chromium and chromedriver
# make test-all  the slow tests: kills, statistics, the live page where a Chromium is, and a real
#              Kafka and a real Spark where Java and Maven are
# Each makes .venv and installs what it needs. PYTHON=... chooses an interpreter.

NEWEST = for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
  $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
    >/dev/null 2>&1 && echo $$python && break; done
PYTHON ?= $(shell $(NEWEST))

VENV = .venv
BIN = $(VENV)/bin
DEMO = demo

.PHONY: demo demo-kafka test check docs pictures test-all clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	mkdir -p $(DEMO)
	$(BIN)/python simulations/demo_stream.py $(DEMO)/image_segments.jsonl
	$(BIN)/streamclust run $(DEMO)/image_segments.jsonl --ignore category --explain \
	  --output $(DEMO)/assignments.jsonl --events $(DEMO)/changes.jsonl \
	  2> $(DEMO)/summary.txt || { cat $(DEMO)/summary.txt; exit 1; }
	@echo; echo "An answer ($(DEMO)/assignments.jsonl):"; tail -n 1 $(DEMO)/assignments.jsonl
	@echo; echo "Changes ($(DEMO)/changes.jsonl), the first three births:"
	@grep ClusterBorn $(DEMO)/changes.jsonl | head -n 3
	@echo; cat $(DEMO)/summary.txt

demo-kafka: $(VENV)/.test
	@if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then \
	  $(BIN)/python -m pip install --quiet --group light-broker; fi
	$(BIN)/python simulations/demo_kafka.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -q -m "not stress and not quality and not kafka and not spark and not browser"

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -E -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

pictures: $(VENV)/.test
	$(BIN)/python -m simulations.pictures

test-all: $(VENV)/.test
	$(BIN)/python -m pytest -q -m "stress or quality or kafka or spark or browser"

clean:
	rm -rf $(VENV) $(DEMO) .kafka docs/_build

$(VENV)/.python:
	@test -n "$(PYTHON)" || { \
	  echo "streamclust needs Python 3.11 or newer with venv (on Debian: python3-venv);" >&2; \
	  echo "none was found. If yours has another name: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "streamclust needs Python 3.11 or newer; $(PYTHON) is older" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.installed: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.test: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet -e . --group test
	touch $@ $(VENV)/.installed

$(VENV)/.check: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet -e . --group check
	touch $@ $(VENV)/.installed

$(VENV)/.docs: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet -e . --group docs
	touch $@ $(VENV)/.installed
