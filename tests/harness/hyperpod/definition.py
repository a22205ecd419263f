# SPDX-License-Identifier: MIT-0
"""The stand-in's CustomResourceDefinition, made from the schema that the fast tests use."""

from __future__ import annotations

import json
from pathlib import Path

from harness.api import Object

SCHEMA = Path(__file__).parents[2] / "render" / "crds" / "hyperpodpytorchjob.schema.json"
GROUP, VERSION, PLURAL = "sagemaker.amazonaws.com", "v1", "hyperpodpytorchjobs"
KIND = "HyperPodPyTorchJob"


def structural(node: Object) -> Object:
    """A node of the JSON schema as Kubernetes' structural schema, which has neither closed objects nor type lists."""
    if isinstance(node["type"], list):
        return {"x-kubernetes-int-or-string": True}
    result: Object = {"type": node["type"]}
    properties = node.get("properties")
    if properties and {} in properties.values():  # a pod's spec: the API server checks it when the pod is made
        return result | {"x-kubernetes-preserve-unknown-fields": True}
    if properties:
        result["properties"] = {name: structural(child) for name, child in properties.items()}
    elif isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = structural(node["additionalProperties"])
    if "items" in node:
        result["items"] = structural(node["items"])
    if "required" in node:
        result["required"] = node["required"]
    return result


def definition(kind: str = KIND) -> Object:
    """The definition with the kind in the given spelling: AWS's own pages use two."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    if kind not in schema["properties"]["kind"]["enum"]:
        raise ValueError(f"kind {kind!r}: the schema knows {schema['properties']['kind']['enum']}")
    body = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **{part: structural(schema["properties"][part]) for part in ("spec", "status")},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            "annotations": {"lingoss-test/stand-in": "made from the sagemaker-hyperpod wheel; AWS publishes none"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": PLURAL, "singular": PLURAL[:-1]},
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": body},
                }
            ],
        },
    }
