# make demo, make test: everything on a machine that has only Python 3.11, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Nothing is downloaded at run time; vLLM sends no usage reports from tests.
export HF_HUB_OFFLINE := 1
export VLLM_NO_USAGE_STATS := 1
export DO_NOT_TRACK := 1

.PHONY: help install demo demo-model test test-unit test-processing test-encoding test-language test-long test-all check parity zoo matrix \
	matrix-quick matrix-store matrix-released matrix-picture wheel doctor clean

help:
	@echo "make demo        serve the demo model through vLLM and let it read pictures"
	@echo "make test        all tests (make test-unit: those without an engine)"
	@echo "make test-processing  every tiny processor, both strategies, the contracts of the processing side"
	@echo "make test-encoding    encoders: buckets, compiled towers, components"
	@echo "make test-language    what the text model is given: levels, inputs for each layer, attention both ways, positions"
	@echo "make test-long   over 2,000 generated requests to the processors (half an hour)"
	@echo "make test-all    what make test leaves out as well (over an hour)"
	@echo "make check       ruff, mypy and the import rules"
	@echo "make parity      the first eleven families against transformers' generate, in-tree and native beside it"
	@echo "make matrix      every pair of vLLM and transformers, and all families on one of them (an hour; resumes)"
	@echo "make matrix-quick  the corners of that grid, which CI runs; make matrix-store keeps what make matrix found"
	@echo "make zoo         build the tiny checkpoints"
	@echo "make demo-model  train the demo model anew (minutes)"
	@echo "make doctor      what is installed, and whether it fits"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt packaging/setup_env.py $(wildcard packaging/vllm-cpu-bridge/*)
	@$(PYTHON) packaging/setup_env.py --venv $(VENV)
	@touch $@

demo: $(STAMP)
	@$(BIN)/hf-backend demo

demo-model: $(STAMP)
	@$(BIN)/python -m hf_backend.demo.train

test: $(STAMP)
	@$(BIN)/python -m pytest

test-unit: $(STAMP)
	@$(BIN)/python -m pytest -m "not engine and not serve and not packaging"

test-processing: $(STAMP)
	@$(BIN)/python -m pytest tests/property tests/unit -m processing

test-encoding: $(STAMP)
	@$(BIN)/python -m pytest -m encoding

test-language: $(STAMP)
	@$(BIN)/python -m pytest -m language

test-long: $(STAMP)
	@HF_BACKEND_CASES=48 $(BIN)/python -m pytest tests/property -m processing

test-all: $(STAMP)
	@$(BIN)/python -m pytest -m ""

check: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# The families of the table in README.md; FAMILIES="gemma4 qwen2_audio" asks others.
FAMILIES ?= aya_vision cohere2_vision glm4v idefics3 internvl llava llava_next llava_onevision mistral3 qwen2_5_vl qwen2_vl

parity: $(STAMP)
	@$(BIN)/python -m compat.parity $(FAMILIES) --peer ours,in-tree,native --jobs 2 --markdown

matrix: $(STAMP)
	@$(BIN)/python -m compat.matrix --column --jobs 2

matrix-quick: $(STAMP)
	@$(BIN)/python -m compat.matrix --quick

# After make matrix: nothing that it ran is run again.
matrix-store: $(STAMP)
	@$(BIN)/python -m compat.matrix --column --store --markdown docs/matrix-table.md --picture docs/matrix.png

matrix-picture: $(STAMP)
	@$(BIN)/python -m compat.matrix --draw-only --markdown docs/matrix-table.md --picture docs/matrix.png

# The corners with the wheel that users get in place of this tree; RELEASE="hf_backend==0.1.0" or a wheel's path takes another.
RELEASE ?= hf_backend
matrix-released: $(STAMP)
	@rm -rf $(VENV)/released
	@$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/released "$(RELEASE)"
	@$(BIN)/python -m compat.matrix --quick --package $(VENV)/released

wheel: $(STAMP)
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

zoo: $(STAMP)
	@$(BIN)/python -m compat.zoo

doctor: $(STAMP)
	@$(BIN)/hf-backend doctor

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
