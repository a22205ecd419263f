# SPDX-License-Identifier: MIT-0
"""Make the JSON schema of HyperPodPyTorchJob from the pydantic model in the sagemaker-hyperpod wheel (Apache-2.0).

    python tests/harness/hyperpod/make_schema.py [WHEEL]        (without WHEEL pip fetches the pinned one)

AWS publishes no CustomResourceDefinition; the wheel's model, evidently generated from it, is the best public source.
Validating with the model itself proves nothing: its constructor takes snake_case names and ignores all others, so a
camelCase manifest passes unread. Its exported JSON schema, by field name, does check. Corrections made here, each for
a measured reason:

* the top level and `spec` are closed (the model ignores unknown keys there);
* `null` is no valid value (the API server refuses it where the model says Optional), and defaults go (the server's own
  are unknown);
* a pod's spec keeps the names of its fields only; pods are checked by the Kubernetes schema. This also cuts away the
  model's one known mistake, which types a podAntiAffinity term as a node selector term so that it refuses AWS's own
  samples.
"""

import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

REQUIREMENT = "sagemaker-hyperpod==3.12.0"
SHA256 = "e1652ccbf64a8fd0f9ca7e1c9564f3980c619e752fb3343591c92e709c975c0a"
MODEL = "sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py"
TARGET = Path(__file__).resolve().parents[2] / "render" / "crds" / "hyperpodpytorchjob.schema.json"
# The CLI and AWS's samples spell the kind the first way, the task governance page and Kueue's setup the second.
KINDS = ["HyperPodPyTorchJob", "HyperPodPytorchJob"]


def fetch(folder: Path) -> Path:
    """Download the pinned wheel, without its dependencies, into `folder`."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, REQUIREMENT], check=True)
    return next(folder.glob("*.whl"))


def load(wheel: Path, folder: Path) -> ModuleType:
    """Import the one module that holds the model; it needs nothing but pydantic.

    Raises:
        SystemExit: the wheel is not the pinned one.
    """
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{wheel.name} has sha256 {digest}, expected {SHA256} ({REQUIREMENT})")
    path = Path(zipfile.ZipFile(wheel).extract(MODEL, folder))
    spec = importlib.util.spec_from_file_location("hyperpod_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pydantic resolves annotations through it
    spec.loader.exec_module(module)
    return module


def plain(node: Any, definitions: dict[str, Any]) -> Any:
    """One schema without references, `null` alternatives, titles, descriptions and defaults.

    Raises:
        ValueError: the model uses a union that is neither "X or null" nor "integer or string".
    """
    if "$ref" in node:
        return plain(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            return plain(options[0], definitions)
        if sorted(option["type"] for option in options) == ["integer", "string"]:
            return {"type": ["integer", "string"]}
        raise ValueError(f"a union that this script does not know: {options}")
    result: dict[str, Any] = {"type": node["type"]}
    if "properties" in node:
        result["properties"] = {name: plain(value, definitions) for name, value in node["properties"].items()}
        result["additionalProperties"] = False
        if "containers" in node["properties"] and "nodeSelector" in node["properties"]:
            result["properties"] = {name: {} for name in result["properties"]}
        if required := node.get("required"):
            result["required"] = required
    elif isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = plain(node["additionalProperties"], definitions)
    if "items" in node:
        result["items"] = plain(node["items"], definitions)
    return result


def schema(module: ModuleType) -> dict[str, Any]:
    """The schema of a whole object: apiVersion, kind (both spellings), metadata, spec, status."""
    exported = {
        part: getattr(module, name).model_json_schema(by_alias=False)
        for part, name in (("spec", "_HyperPodPytorchJob"), ("status", "HyperPodPytorchJobStatus"))
    }
    parts = {part: plain(value, value["$defs"]) for part, value in exported.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"SPDX-License-Identifier: Apache-2.0. Made by make_schema.py from {REQUIREMENT} (Amazon Web Services).",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": "sagemaker.amazonaws.com/v1"},
            "kind": {"enum": KINDS},
            "metadata": {"type": "object"},
            **parts,
        },
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = Path(sys.argv[1]) if len(sys.argv) > 1 else fetch(folder)
        text = json.dumps(schema(load(wheel, folder)), indent=1, sort_keys=True)
    TARGET.write_text(text + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(text)} characters")


if __name__ == "__main__":
    main()
