# SPDX-License-Identifier: MIT-0
"""The schemas in crds/ accept what the operators accept and refuse a misspelt key, wherever it stands."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

FOLDER = Path(__file__).parent / "crds"
SCHEMAS = {
    path.name.split(".")[0]: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.schema.json")
}
OPEN = {"metadata", "rayStartParams", "containers", "nodeLabels"}
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}

VALID: dict[str, dict[str, Any]] = {
    "hyperpodpytorchjob": {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": "t", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {
            "nprocPerNode": "8",
            "replicaSpecs": [{"name": "pods", "replicas": 2, "maxReplicas": 4, "template": POD}],
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 4, "replicaDiscreteValues": [1, 2, 4]},
            "runPolicy": {
                "cleanPodPolicy": "None",
                "ttlSecondsAfterFinished": -1,
                "restartPolicy": {"evalPeriodSeconds": 3600, "maxFullJobRestarts": 2},
                "logMonitoringConfiguration": [{"name": "loss", "logPattern": "loss", "metricThreshold": 9}],
            },
        },
    },
    "rayjob": {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "r"},
        "spec": {
            "entrypoint": "python x.py",
            "shutdownAfterJobFinishes": True,
            "submitterPodTemplate": POD,
            "rayClusterSpec": {
                "rayVersion": "2.60.0",
                "headGroupSpec": {"rayStartParams": {"num-gpus": "0"}, "template": POD},
                "workerGroupSpecs": [
                    {
                        "groupName": "g",
                        "replicas": 1,
                        "minReplicas": 1,
                        "maxReplicas": 1,
                        "rayStartParams": {},
                        "template": POD,
                    }
                ],
            },
        },
    },
    "clusterqueue": {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "cq"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}],
                }
            ],
        },
    },
    "localqueue": {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "lq", "namespace": "n"},
        "spec": {"clusterQueue": "cq"},
    },
    "resourceflavor": {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
        "spec": {"nodeLabels": {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}},
    },
    "workloadpriorityclass": {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "training-priority"},
        "value": 10,
    },
}


def errors(name: str, thing: dict[str, Any]) -> list[str]:
    """What the schema finds wrong, as `path: message`."""
    found = jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(thing)
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in found]


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every mapping of a sample whose keys the definition names: not labels, selectors or metadata."""
    if path and path[-1] in OPEN:
        return []
    if isinstance(node, list):
        return [place for i, item in enumerate(node) for place in places(item, (*path, i))]
    if not isinstance(node, dict):
        return []
    return [path] + [place for key, value in node.items() for place in places(value, (*path, key))]


MISSPELT = [(name, place) for name, thing in VALID.items() for place in places(thing)]


def test_every_schema_has_a_sample() -> None:
    assert set(SCHEMAS) == set(VALID)


@pytest.mark.parametrize("name", VALID)
def test_accepts(name: str) -> None:
    assert errors(name, VALID[name]) == []


@pytest.mark.parametrize(
    ("name", "place"), MISSPELT, ids=lambda value: value if isinstance(value, str) else ".".join(map(str, value))
)
def test_refuses_a_misspelt_key_at_every_level(name: str, place: tuple[Any, ...]) -> None:
    thing = copy.deepcopy(VALID[name])
    node = thing
    for step in place:
        node = node[step]
    node["replicaz"] = 1
    assert [error for error in errors(name, thing) if "'replicaz' was unexpected" in error]


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("hyperpodpytorchjob", ["spec", "nprocPerNode"], 8, "8 is not of type 'string'"),
        ("hyperpodpytorchjob", ["spec", "runPolicy", "suspend"], None, "None is not of type 'boolean'"),
        (
            "hyperpodpytorchjob",
            ["spec", "runPolicy", "restartPolicy"],
            {},
            "'evalPeriodSeconds' is a required property",
        ),
        ("hyperpodpytorchjob", ["kind"], "HyperpodPytorchJob", "'HyperpodPytorchJob' is not one of"),
        (
            "rayjob",
            ["spec", "rayClusterSpec", "headGroupSpec", "rayStartParams"],
            {"num-gpus": 0},
            "0 is not of type 'string'",
        ),
        ("rayjob", ["apiVersion"], "ray.io/v1alpha1", "'ray.io/v1' was expected"),
        ("rayjob", ["spec", "submitterPodTemplate", "spec"], {}, "'containers' is a required property"),
        ("workloadpriorityclass", ["value"], "high", "'high' is not of type 'integer'"),
    ],
)
def test_refuses_a_wrong_value(name: str, path: list[str], value: Any, message: str) -> None:
    thing = copy.deepcopy(VALID[name])
    node = thing
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    assert [error for error in errors(name, thing) if message in error]


@pytest.mark.parametrize("name", ["HyperPodPyTorchJob", "HyperPodPytorchJob"])
def test_both_spellings_of_the_kind(name: str) -> None:
    assert errors("hyperpodpytorchjob", VALID["hyperpodpytorchjob"] | {"kind": name}) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_stays_small(name: str) -> None:
    assert (FOLDER / f"{name}.schema.json").stat().st_size < 150_000
