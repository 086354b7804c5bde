# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0

# Any of these works on a fresh machine: what is missing is installed first, or named.
.PHONY: golden stack tools help check test generate bench demo lock clean
.DEFAULT_GOAL := help

# The first Python that is new enough; `make PYTHON=...` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help:
	@echo 'make demo      the exporter on a simulated node with eight GPUs: http://localhost:9420'
	@echo 'make test      every test'
	@echo 'make stack     the demo, Prometheus, Alertmanager and a Collector together; one Ctrl-C ends all'
	@echo 'make tools     Prometheus, Alertmanager and Helm, from PATH or built into a cache'
	@echo 'make check     style, types, layers, generated files, rules, chart'
	@echo 'make generate  docs and other files that derive from the code'
	@echo 'make bench     the budgets, measured beside nvitop-exporter on the same fake NVML'
	@echo 'make lock      requirements.lock anew'

$(READY): requirements.lock pyproject.toml exporter/veo_client/pyproject.toml
	@sh tools/setup.sh "$(PYTHON)" $(VENV) requirements.lock
	@touch $@

demo: $(READY)
	@sh tools/media.sh optional
	@exec $(BIN)/veo-exporter demo --web.listen-address localhost:9420 $(DEMO_FLAGS)

test: $(READY) tools
	@sh tools/media.sh required
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_FLAGS)

check: $(READY) tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy alerts bench dashboards helm tests tools
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/python -m tools.references
	$(BIN)/python -m tools.generate --check
	.tools/bin/promtool check rules --lint=all --lint-fatal alerts/rules/*.yaml
	.tools/bin/promtool check config alerts/prometheus.yml
	.tools/bin/amtool check-config alerts/alertmanager.yaml
	$(BIN)/amlint check --rules 'alerts/rules/*.yaml' alerts/alertmanager.yaml
	.tools/bin/helm lint --strict helm/veo-exporter

generate: $(READY)
	$(BIN)/python -m tools.generate

bench: $(READY)
	@sh bench/setup.sh "$(PYTHON)"
	$(BIN)/python -m bench

# uv resolves for every platform and Python at once; it is asked for only here.
lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-package veo-client --quiet --output-file requirements.lock
	uv pip compile bench/requirements.in --universal --python-version 3.11 --generate-hashes \
		--no-header --quiet --output-file bench/requirements.lock

clean:
	rm -rf $(VENV) .venv-bench .tools build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The golden page anew; its diff is what a reviewer reads.
golden: $(READY)
	UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q tests/contracts/test_exposition.py

# Prometheus, Alertmanager and Helm: from PATH if new enough, else built once into a cache.
tools: $(READY)
	$(BIN)/python tools/install.py

stack: tools
	@$(BIN)/python -m tools.stack $(STACK_FLAGS)
