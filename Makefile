# make demo         see the package do its job on real data
# make test         lint, types, golden numbers, and some cases of every test: five minutes
# make test-all     the other cases of every test, and the examples of the documentation
# make test-lowest  what `make test` runs, with the oldest dependencies that pyproject.toml allows
# make test-newest  the same with the newest ones for another Python: PYTHON=python3.14
# make sanitize     run the tests of the kernels under AddressSanitizer and UBSan (gcc on Linux)
# make docs         build the documentation into docs/_build/html
# make torture      10^5 steps of every estimator at rates and on rows of any size: takes hours
#
# Each makes its own virtual environment the first time; after that it needs no network.

PYTHON ?= python3
VENV ?= .venv
# For pytest, such as PYTEST_ARGS=--cov, which takes twice the time
PYTEST_ARGS ?=
BIN = $(abspath $(VENV))/bin
SOURCES = $(shell find onlinebregman -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' -o -name 'meson.build' -o -name py.typed) meson.build meson.options pyproject.toml

# Oldest versions: build requirements and dependencies as they are stated, with == for >=
LOWEST =

# Python compiles modules and tests to bytecode when they are imported, and keeps it: pip would compile all there are.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile
PIP_PACKAGE = $(PIP_INSTALL) --no-build-isolation --no-deps --no-index

# A test that takes ten minutes hangs: its process prints where, and ends, and the others go on.
LIMIT = 600
PYTEST = pytest -q -n logical --dist worksteal -o faulthandler_timeout=$(LIMIT) -o faulthandler_exit_on_timeout=true $(PYTEST_ARGS)

.PHONY: demo test test-all torture test-lowest test-newest sanitize docs clean

demo: $(VENV)/installed-plot
	$(BIN)/python -P -m onlinebregman demo

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/$(PYTEST)
	@echo "All is well. Tests that xfailed are checks of scikit-learn that shuffle the rows of a stream."

test-all: $(VENV)/installed-test $(VENV)/requirements-docs
	MPLBACKEND=Agg $(BIN)/python -P -m sphinx -q -W -j auto -D plot_gallery=0 -b doctest docs docs/_build/doctest
	$(BIN)/$(PYTEST) --rest

torture: LIMIT = 0
torture: $(VENV)/installed-test
	ONLINEBREGMAN_TORTURE_STEPS=100000 $(BIN)/$(PYTEST) --all tests/contracts/test_torture_all.py -k many_steps

# What depends on the versions is what the package calls, and how it is compiled. Texts and their layout do not; neither
# does how work is distributed, by a dask that is no older here than in `make test`.
NO_VERSIONS = test_layout test_size test_docstrings test_gallery contracts/test_torture_all \
	dask/test_cluster dask/test_distributed
test-lowest:
	$(MAKE) VENV=$(VENV)-lowest LOWEST=yes $(VENV)-lowest/installed-test
	$(abspath $(VENV)-lowest)/bin/$(PYTEST) $(NO_VERSIONS:%=--ignore=tests/%.py)

test-newest:
	$(MAKE) VENV=$(VENV)-newest $(VENV)-newest/installed-test
	$(abspath $(VENV)-newest)/bin/$(PYTEST)

# Python itself leaks on purpose, and its allocator would hide what lies behind a buffer.
sanitize: $(VENV)-sanitize/installed
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc \
		PYTHONPATH=$(abspath $(VENV)-sanitize) $(BIN)/python -P -m $(PYTEST) --all \
		$(addprefix tests/_kernels/,geometries learners losses matrices rows) tests/contracts/test_fuzz.py

# A folder with the package alone, which comes before what the environment has. -O1 -g1 compiles in a third of the time
# of -O2 -g, and finds as much: what an optimiser removes cannot fail, and a report only needs lines. Left out of UBSan is
# what checks every pointer, which takes half of the compiler's time: AddressSanitizer sees what is read or written there.
SANITIZED = -Dbuildtype=debugoptimized -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false
SANITIZED_CFLAGS = -g1 -fno-sanitize=null,alignment,object-size,pointer-overflow
$(VENV)-sanitize/installed: $(VENV)/requirements-test $(SOURCES)
	rm -rf $(VENV)-sanitize
	PATH="$(BIN):$$PATH" CFLAGS="$(SANITIZED_CFLAGS)" $(PIP_PACKAGE) --target $(VENV)-sanitize $(SANITIZED:%=-Csetup-args=%) .
	touch $@

docs: $(VENV)/installed-docs
	$(BIN)/python -P -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/narrow.py docs/_build/html

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest $(VENV)-sanitize build dist docs/_build .coverage .hypothesis .pytest_cache .ruff_cache

# What the build and the extra $* need, as pyproject.toml lists it. Build isolation is left out on purpose: installing
# again after a change then works offline. river needs newer versions than the oldest that the package runs with.
$(VENV)/requirements-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); q = p["project"]; \
		needed = [*p["build-system"]["requires"], *q["dependencies"]]; \
		needed = [r.replace(">=", "==") for r in needed] if "$(LOWEST)" else needed; \
		extra = [r for r in q["optional-dependencies"]["$*"] if not ("$(LOWEST)" and r.startswith("river"))]; \
		print(*needed, "ninja", *extra, sep="\n")' > $@.txt
	$(PIP_INSTALL) --requirement $@.txt
	mv $@.txt $@

$(VENV)/installed-%: $(VENV)/requirements-% $(SOURCES)
	PATH="$(BIN):$$PATH" $(PIP_PACKAGE) --force-reinstall .
	touch $@

.PRECIOUS: $(VENV)/requirements-% $(VENV)/installed-%
