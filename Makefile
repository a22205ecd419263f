# SPDX-License-Identifier: MIT-0
.DEFAULT_GOAL := help
.PHONY: help env demo test test-engine test-elastic test-cluster test-e2e test-all search golden lint bench lock lock-engine lock-images build-images push-images docs tools operators clean
VENV := .venv/bin
IMAGE_OPTIONS = $(if $(IMAGE),--image "$(IMAGE)") $(if $(REGISTRY),--registry "$(REGISTRY)") $(if $(TAG),--tag "$(TAG)") \
  $(if $(PLATFORM),--platform "$(PLATFORM)") $(if $(FLAGS),--flags="$(FLAGS)")

help: ## Print these targets
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

env: ## Make .venv from the locks (Python >= 3.11 is all it needs)
	@trainer/env.sh

demo: env ## The whole pipeline on a real 135M model: no GPU, no cluster, no token (about 10 minutes on 2 cores)
	@$(VENV)/lingoss demo

test: env ## Lint, types, and all tests that need no cluster
	@$(MAKE) --no-print-directory lint
	@cd trainer && ../$(VENV)/python -m pytest -q -n auto $(ARGS)
	@$(VENV)/python -m pytest -q -n auto -c tests/pytest.ini --rootdir tests -m "not full" tests/render tests/images $(ARGS)

test-engine: env ## GRPO against the real vLLM on a CPU, in an environment of its own (Linux; 3 to 5 minutes)
	@engine=$$(tests/engine/env.sh) && PYTHONPATH=trainer/src "$$engine/bin/python" -m pytest -q -c tests/pytest.ini --rootdir tests tests/engine $(ARGS)

test-elastic: env ## Elastic training by real hyperpodrun and torchrun, faults and all (Linux; about 5 minutes)
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests -n 2 --dist worksteal tests/elastic $(ARGS)

test-cluster: env ## The chart on a real API server: two layouts whole, the others scheduling only (Debian, root, go)
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests -n 2 --dist worksteal tests/harness tests/cluster -m "not full" $(ARGS)

test-e2e: env ## The whole pipeline in pods that really run, by a real kubelet (Debian, root, go; about 15 minutes)
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests --durations 0 tests/e2e -m "not full" $(ARGS)

test-all: test test-engine test-elastic ## Everything, every layout whole, images and faults in real pods; takes long
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests -n 2 --dist worksteal tests/harness tests/cluster $(ARGS)
	@$(VENV)/python -m pytest -q -c tests/pytest.ini --rootdir tests tests/e2e tests/images -m "full or not full" $(ARGS)

search: env ## Look for examples that break a property test: random ones, 1,000 of each (slow; a find becomes an @example)
	@cd trainer && HYPOTHESIS_PROFILE=search ../$(VENV)/python -m pytest -q -n auto -m hypothesis $(ARGS)

golden: env ## Rewrite the rendered twins in tests/render/golden
	@$(VENV)/python tests/render/golden.py

tools: env ## Build what test-cluster needs (Kubernetes, operators; once, 15 to 30 minutes)
	@cd tests && ../$(VENV)/python -m harness build

lint: env ## ruff (lint and format), import rules, types, Dockerfiles, shell
	@$(VENV)/ruff check . && $(VENV)/ruff format --check .
	@cd trainer && ../$(VENV)/lint-imports --no-cache && ../$(VENV)/mypy
	@cd tests && MYPYPATH=.:../charts:../trainer/src:../images ../$(VENV)/mypy --config-file ../trainer/pyproject.toml --explicit-package-bases ../charts/values.py harness cluster engine elastic e2e images ../images/*.py
	@$(VENV)/hadolint images/*/Dockerfile && $(VENV)/shellcheck .ci/run trainer/env.sh tests/engine/env.sh operators/*.sh images/*.sh images/toolbox/*.sh

bench: env ## Measure each figure that the project promises and print it beside its bar
	@$(VENV)/python bench/bench.py $(ARGS)

docs: env ## Rewrite what is generated: docs/configuration.md, docs/troubleshooting.md, the chart's schema and values tables
	@$(VENV)/python -m lingoss.config > docs/configuration.md
	@$(VENV)/python -m lingoss.doctor.page > docs/troubleshooting.md
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

lock-images: ## Resolve the images' locks again, and pin base images and EFA's archive where they can be reached
	@$(VENV)/python images/lock.py && $(VENV)/python images/pins.py

build-images: ## Build toolbox and trainer with docker buildx, podman or buildah (IMAGE=all REGISTRY= TAG= PLATFORM= FLAGS=)
	@python3 images/build.py build $(IMAGE_OPTIONS)

push-images: ## Build, push to REGISTRY, and write the digests into values/images.yaml (IMAGE= TAG= PLATFORM= FLAGS=)
	@python3 images/build.py push $(IMAGE_OPTIONS)

operators: ## Install what the chart expects on a cluster: KubeRay; with KUEUE=1 Kueue too (their own releases)
	@operators/install.sh

clean: ## Remove what make made: environment, demo, caches of this folder (not the shared model cache)
	@rm -rf .venv demo .pytest_cache .ruff_cache .mypy_cache trainer/.pytest_cache trainer/.ruff_cache trainer/.mypy_cache
