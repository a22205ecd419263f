# SPDX-License-Identifier: MIT-0
.DEFAULT_GOAL := help
.PHONY: help env demo test test-engine test-cluster test-all search golden lint bench lock lock-engine lock-images docs tools operators clean
VENV := .venv/bin

help: ## Print these targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

env: ## Make .venv from the locks (Python >= 3.11 is all it needs)
	@trainer/env.sh

demo: env ## The whole pipeline on a real 135M model: no GPU, no cluster, no token (about 10 minutes on 2 cores)
	@$(VENV)/lingoss demo

test: env ## Lint, types, and all tests that need no cluster
	@$(MAKE) --no-print-directory lint
	@cd trainer && ../$(VENV)/python -m pytest -q -n auto $(ARGS)
	@$(VENV)/python -m pytest -q -n auto -c tests/pytest.ini --rootdir tests tests/render $(ARGS)

test-engine: env ## GRPO against the real vLLM on a CPU, in an environment of its own (Linux; 3 to 5 minutes)
	@engine=$$(tests/engine/env.sh) && PYTHONPATH=trainer/src "$$engine/bin/python" -m pytest -q -c tests/pytest.ini --rootdir tests tests/engine $(ARGS)

test-cluster: env ## The chart on a real API server: two layouts whole, the others scheduling only (Debian, root, go)
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests -n 2 --dist worksteal tests/harness tests/cluster -m "not full" $(ARGS)

test-all: test test-engine ## Everything, every layout whole; takes long
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests -n 2 --dist worksteal tests/harness tests/cluster $(ARGS)

search: env ## Look for examples that break a property test: random ones, 1,000 of each (slow; a find becomes an @example)
	@cd trainer && HYPOTHESIS_PROFILE=search ../$(VENV)/python -m pytest -q -n auto -m hypothesis $(ARGS)

golden: env ## Rewrite the rendered twins in tests/render/golden
	@$(VENV)/python tests/render/golden.py

tools: env ## Build what test-cluster needs (Kubernetes, operators; once, 15 to 30 minutes)
	@cd tests && ../$(VENV)/python -m harness build

lint: env ## ruff (lint and format), import rules, types, Dockerfiles, shell
	@$(VENV)/ruff check . && $(VENV)/ruff format --check .
	@cd trainer && ../$(VENV)/lint-imports --no-cache && ../$(VENV)/mypy
	@cd tests && MYPYPATH=.:../charts:../trainer/src ../$(VENV)/mypy --config-file ../trainer/pyproject.toml --explicit-package-bases ../charts/values.py harness cluster engine
	@$(VENV)/hadolint images/*/Dockerfile && $(VENV)/shellcheck .ci/run trainer/env.sh tests/engine/env.sh operators/*.sh

bench: env ## Measure each figure that the project promises and print it beside its bar
	@$(VENV)/python bench/bench.py $(ARGS)

docs: env ## Rewrite what is generated: docs/configuration.md, the chart's schema and values tables
	@$(VENV)/python -m lingoss.config > docs/configuration.md
	@$(VENV)/python charts/values.py

lock: ## Resolve the locks again from trainer/pyproject.toml
	@printf '%s\n' '# The one tool that pip itself installs; everything else comes from requirements.lock through it. Made by `make lock`.' > trainer/bootstrap.lock
	@echo "uv==0.13.9" | $(VENV)/uv pip compile --quiet --no-header --generate-hashes - >> trainer/bootstrap.lock
	@cd trainer && ../$(VENV)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --extra hub --extra train --extra dev \
	  --override overrides.txt --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	@$(MAKE) --no-print-directory lock-images

lock-engine: ## Resolve tests/engine/requirements.lock again, as near as can be to trainer/requirements.lock
	@cp trainer/requirements.lock tests/engine/requirements.lock
	@cd tests/engine && ../../$(VENV)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --override overrides.txt --extra hub --extra train --custom-compile-command "make lock-engine" ../../trainer/pyproject.toml requirements.in -o requirements.lock

lock-images: ## Resolve the images' locks again, within the versions of trainer/requirements.lock
	@echo "# Everything of the toolbox image, without torch. Made by \`make lock-images\`." > images/toolbox/requirements.lock
	@cd trainer && ../$(VENV)/uv pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --extra hub --constraints requirements.lock pyproject.toml >> ../images/toolbox/requirements.lock
	@echo "# What builds the package inside an image; never part of one. Made by \`make lock-images\`." > images/toolbox/build.lock
	@echo "hatchling" | $(VENV)/uv pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --constraints trainer/requirements.lock - >> images/toolbox/build.lock

operators: ## Install what the chart expects on a cluster: KubeRay; with KUEUE=1 Kueue too (their own releases)
	@operators/install.sh

clean: ## Remove what make made: environment, demo, caches of this folder (not the shared model cache)
	@rm -rf .venv demo .pytest_cache .ruff_cache .mypy_cache trainer/.pytest_cache trainer/.ruff_cache trainer/.mypy_cache
