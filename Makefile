# make demo   three translators, their scores and pictures, from nothing
# make test   everything that must pass, from nothing
# make check  the quick part of it: style, types, layers

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

demo: $(VENV)/demo
	$(BIN)/foveate demo

test: $(VENV)/test check
	$(BIN)/python -m pytest

check: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What is installed depends on pyproject.toml alone.
$(VENV)/demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

.PHONY: demo test check
