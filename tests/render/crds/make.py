# SPDX-License-Identifier: MIT-0
"""Make small JSON schemas of the custom resources that the chart or its tests write from the released definitions.

    .venv/bin/python tests/render/crds/make.py

It takes the definitions (Apache-2.0) of the versions that tests/harness/go pins; a cluster test says when the result is
stale. HyperPodPyTorchJob has no released definition: tests/harness/hyperpod/make_schema.py makes its schema.

A definition is open: the API server drops an unknown key or reports it, whichever the client asks for. Here every object
with named fields is closed, so that a misspelt key fails. A pod's spec keeps the names of its fields only, because pods
are checked by the Kubernetes schema. Rules in CEL stay out; the API server of the cluster tests runs them.
"""

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from harness import operators

TARGET = Path(__file__).resolve().parent
WANTED = {
    "RayJob": "kuberay",
    "ClusterQueue": "kueue",
    "LocalQueue": "kueue",
    "ResourceFlavor": "kueue",
    "WorkloadPriorityClass": "kueue",
}
KEPT = {"type", "enum", "required", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
INT_OR_STRING: dict[str, Any] = {"type": ["integer", "string"]}


def closed(node: dict[str, Any]) -> dict[str, Any]:
    """One node of a structural schema as plain JSON schema: checks only, closed where its fields are named."""
    if node.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING | {key: node[key] for key in KEPT & set(node)}
    result = {key: node[key] for key in sorted(KEPT & set(node))}
    properties = node.get("properties")
    if properties is not None:
        pod_spec = "containers" in properties and "nodeSelector" in properties
        result["properties"] = {name: {} if pod_spec else closed(child) for name, child in properties.items()}
        if not node.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
    elif isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = closed(node["additionalProperties"])
    if "items" in node:
        result["items"] = closed(node["items"])
    return result


def schema(definition: dict[str, Any]) -> dict[str, Any]:
    """The schema of a whole object in the version that the definition stores."""
    names, group = definition["spec"]["names"], definition["spec"]["group"]
    version = next(item for item in definition["spec"]["versions"] if item["storage"])
    body = closed(version["schema"]["openAPIV3Schema"])
    body["properties"] |= {
        "apiVersion": {"const": f"{group}/{version['name']}"},
        "kind": {"const": names["kind"]},
        "metadata": {"type": "object"},
    }
    body["required"] = sorted({"apiVersion", "kind", "metadata", *body.get("required", [])})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "SPDX-License-Identifier: Apache-2.0. Made by make.py from the released definition.",
        **body,
    }


def texts() -> dict[str, str]:
    """The text of every schema file, by its name."""
    result = {}
    for kind, source in WANTED.items():
        definition = next(
            thing
            for thing in operators.manifests(source)
            if thing["kind"] == "CustomResourceDefinition" and thing["spec"]["names"]["kind"] == kind
        )
        result[f"{kind.lower()}.schema.json"] = json.dumps(schema(definition), indent=1, sort_keys=True) + "\n"
    return result


if __name__ == "__main__":
    for name, text in texts().items():
        (TARGET / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} characters")
