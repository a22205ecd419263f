# SPDX-License-Identifier: MIT-0
"""Every manifest is valid for Kubernetes 1.34 with no unknown field, or for the schema of its custom resource."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import charts
import jsonschema
import pytest
from importlib_resources import files
from referencing import Registry, Resource

from cases import Case, everywhere

CUSTOM = Path(__file__).parent / "crds"
CORE = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{charts.KUBERNETES}-local-strict"


@cache
def validator(api_version: str, kind: str) -> jsonschema.Draft202012Validator | None:
    """A validator of one kind, or None when there is no schema. (kubernetes-validate itself reads 6 MB at each call.)"""
    custom = CUSTOM / f"{kind.lower()}.schema.json"
    if custom.exists():
        return jsonschema.Draft202012Validator(json.loads(custom.read_text()))
    group, _, version = api_version.rpartition("/")
    core = CORE / f"{kind.lower()}-{'-'.join(filter(None, (group.split('.')[0], version)))}.json"
    if not core.is_file():
        return None
    return jsonschema.Draft202012Validator(json.loads(core.read_text()), registry=definitions())


@cache
def definitions() -> Registry[Any]:
    loaded: Registry[Any] = Resource.from_contents(json.loads((CORE / "_definitions.json").read_text())) @ Registry()
    return loaded.crawl()


def problems(manifest: dict[str, Any]) -> list[str]:
    """What is wrong with a manifest, one line each."""
    found = validator(manifest["apiVersion"], manifest["kind"])
    if found is None:
        return [f"no schema for {manifest['apiVersion']} {manifest['kind']}"]
    return [f"{'.'.join(map(str, error.path))}: {error.message[:300]}" for error in found.iter_errors(manifest)]


@everywhere
def test_every_manifest_is_valid(case: Case) -> None:
    found = {charts.identifier(manifest): problems(manifest) for manifest in case.manifests()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@everywhere
def test_every_pod_of_a_custom_resource_is_a_valid_pod(case: Case) -> None:
    """The schemas of custom resources know only the names of a pod's fields."""
    for pod in case.pods():
        metadata = {"name": "pod", **pod.metadata}
        alone = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.spec}
        assert problems(alone) == [], pod.name


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ({"spec": {"containers": [{"name": "a", "imagee": "x"}]}}, "imagee"),
        ({"spec": {"containers": [{"name": "a", "image": 3}]}}, "string"),
        ({"spec": {}}, "containers"),
        ({"spek": {}}, "spek"),
    ],
)
def test_the_check_itself_finds_what_is_wrong(broken: dict[str, Any], word: str) -> None:
    assert word in "\n".join(problems({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **broken}))
