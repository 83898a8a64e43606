# make demo        three translators, their scores and pictures, from nothing
# make test        everything that must pass, from nothing
# make test-quick  the tests that train nothing and need no tool of Linux: minutes
# make test-rules  the tests that read the files of the project: names, sizes, layers, what attends, documentation
# make test-device the tests of accelerators on a real one: FOVEATE_TEST_DEVICE=cuda (or mps, xpu) make test-device
# make coverage    all tests, and which lines of the package they run: slower
# make fuzz        20,000 damaged files, read by every reader
# make check       style, types, layers
# make docs        the documentation as a site in build/site; a link that leads nowhere is an error
# make dist        wheel and sdist in dist

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
QUICK = tests/attention tests/nn tests/models tests/decoding
RULES = $(wildcard $(patsubst %,tests/test_%.py,names sizes layers errors import files docs site benchmarks systems \
	gallery_page sources_page contributing workflows)) tests/attention/test_hooks.py

demo: $(VENV)/demo
	$(BIN)/foveate demo

test: $(VENV)/test check docs
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-quick: $(VENV)/test
	$(BIN)/python -m pytest -n 2 $(QUICK)

test-rules: $(VENV)/test
	$(BIN)/python -m pytest -n 2 --dist loadfile $(RULES)

test-device: $(VENV)/test
	FOVEATE_TEST_DEVICE=$${FOVEATE_TEST_DEVICE:?name a device: cuda, mps or xpu} $(BIN)/python -m pytest tests/device

coverage: $(VENV)/test
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov

fuzz: $(VENV)/test
	$(BIN)/python tests/fuzz/fuzzing.py --tries 20000

check: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict --follow-imports=silent tests/user_script.py
	$(BIN)/lint-imports

docs: $(VENV)/test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

dist: $(VENV)/test
	$(BIN)/python -m build

# What image models and metrics of captions are compared with, in a folder of their own (tests/references.py). Without
# dependencies: torchvision's own would replace torch by the build that it was compiled for, and the tests need no
# compiled operator.
REFERENCES = torchvision==0.28.0 timm==1.0.31 pycocoevalcap==1.2

# What is installed depends on pyproject.toml, and for the tests on REFERENCES.
$(VENV)/demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,docs]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target $(VENV)/references --upgrade $(REFERENCES)
	touch $@

.PHONY: demo test test-quick test-rules test-device coverage fuzz check docs dist
