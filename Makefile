# make demo          see the package do its job on real data
# make test          lint, then run all tests with coverage
# make test-lowest   run the tests with the oldest dependencies that pyproject.toml allows
#
# Each makes its own virtual environment the first time; after that it needs no network.

PYTHON ?= python3
VENV ?= .venv
BIN = $(abspath $(VENV))/bin
SOURCES = $(shell find onlinebregman -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name 'meson.build' -o -name py.typed) meson.build pyproject.toml

# Oldest versions: build requirements and dependencies as they are stated, with == for >=
LOWEST =

.PHONY: demo test test-lowest clean

demo: $(VENV)/installed-plot
	$(BIN)/python -P -m onlinebregman demo

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -n auto --dist worksteal --cov --cov-report=term

test-lowest:
	$(MAKE) VENV=$(VENV)-lowest LOWEST=yes $(VENV)-lowest/installed-test
	$(abspath $(VENV)-lowest)/bin/pytest -n auto --dist worksteal

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist .coverage .hypothesis .pytest_cache .ruff_cache

# What the build and the extra $* need, as pyproject.toml lists it. Build isolation is left out on purpose: installing
# again after a change then works offline.
$(VENV)/requirements-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); q = p["project"]; \
		needed = [*p["build-system"]["requires"], *q["dependencies"]]; \
		needed = [r.replace(">=", "==") for r in needed] if "$(LOWEST)" else needed; \
		print(*needed, "ninja", *q["optional-dependencies"]["$*"], sep="\n")' > $@.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --requirement $@.txt
	mv $@.txt $@

$(VENV)/installed-%: $(VENV)/requirements-% $(SOURCES)
	PATH="$(BIN):$$PATH" $(BIN)/python -m pip install --disable-pip-version-check --quiet \
		--no-build-isolation --no-deps --no-index --force-reinstall .
	touch $@

.PRECIOUS: $(VENV)/requirements-% $(VENV)/installed-%
