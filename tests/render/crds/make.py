# SPDX-License-Identifier: MIT-0
"""Make small JSON schemas of the custom resources that the chart or its tests write from the released definitions.

    python tests/render/crds/make.py KUBERAY_CRD_FOLDER KUEUE_CRD_FOLDER

The folders are `config/crd/bases` of ray-operator v1.5.0 and `config/components/crd/bases` of kueue v0.17.0, as the Go
module proxy serves them (Apache-2.0). HyperPodPyTorchJob has no released definition; tests/harness/hyperpod/make_schema.py
makes its schema.

A definition is open: the API server drops an unknown key or reports it, whichever the client asks for. Here every object
with named fields is closed, so that a misspelt key fails. A pod's spec keeps the names of its fields only, because pods are
checked by the Kubernetes schema. Rules in CEL stay out; the API server of the cluster tests runs them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).resolve().parent
WANTED = {
    "ray.io_rayjobs.yaml": "ray-operator v1.5.0",
    "kueue.x-k8s.io_clusterqueues.yaml": "kueue v0.17.0",
    "kueue.x-k8s.io_localqueues.yaml": "kueue v0.17.0",
    "kueue.x-k8s.io_resourceflavors.yaml": "kueue v0.17.0",
    "kueue.x-k8s.io_workloadpriorityclasses.yaml": "kueue v0.17.0",
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


def schema(definition: dict[str, Any], source: str) -> dict[str, Any]:
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
        "$comment": f"SPDX-License-Identifier: Apache-2.0. Made by make.py from the definition in {source}.",
        **body,
    }


def main() -> None:
    folders = [Path(argument) for argument in sys.argv[1:]]
    for name, source in WANTED.items():
        found = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if found is None:
            raise SystemExit(f"{name} is in none of the folders {[str(folder) for folder in folders]}")
        result = schema(yaml.safe_load(found.read_text(encoding="utf-8")), source)
        target = TARGET / f"{result['properties']['kind']['const'].lower()}.schema.json"
        text = json.dumps(result, indent=1, sort_keys=True)
        target.write_text(text + "\n", encoding="utf-8")
        print(f"{target.name}: {len(text)} characters")


if __name__ == "__main__":
    main()
