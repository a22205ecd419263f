# SPDX-License-Identifier: MIT-0
"""Renders of the chart, and the pods in them, as plain Python values. No cluster.

    render("g6e-12xlarge", {"global.stage": "sft"})      the manifests, in the order of Helm
    refusal("g5-12xlarge", {"sft.nodes": 99})            the message of a render that must fail
    pods(manifests)                                      every pod template, wherever it stands

A render is run once for each state of the chart and each set of arguments; its text is kept beside the tools of the
harness, where all workers of pytest-xdist find it, and the next run of the tests too.
"""

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness import cache as tool_cache
from harness import helm

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "lingoss"
# `make push-images` writes values/images.yaml beside the layouts.
LAYOUTS = {file.stem: file for file in sorted((ROOT / "values").glob("*.yaml")) if not file.stem.startswith("images")}
EXAMPLES = {file.stem: file for file in sorted((ROOT / "values" / "examples").glob("*.yaml"))}
BASE = "g6e-12xlarge"
KUBERNETES = "1.34.0"
# What a cluster with all operators answers; the chart reads it only to name a missing CRD.
APIS = ("ray.io/v1", "kueue.x-k8s.io/v1beta2", "sagemaker.amazonaws.com/v1")
RENDERS = tool_cache.root() / "renders"

Manifest = dict[str, Any]
Values = Mapping[str, Any]


class RenderError(Exception):
    """Helm refused to render; the text is what the user sees."""


@dataclass(frozen=True)
class Pod:
    """A pod template: the object that holds it, its place in there, and what Kubernetes makes of it."""

    owner: Manifest
    place: str
    metadata: dict[str, Any]
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.owner['kind']}/{self.owner['metadata']['name']} {self.place}"

    @property
    def part(self) -> str:
        """The component label: prepare, sft, grpo, …"""
        return str(self.labels.get("app.kubernetes.io/component"))

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def containers(self) -> list[dict[str, Any]]:
        """Init containers and containers."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    def amount(self, resource: str) -> int:
        """What the pod's containers ask for of an extended resource, together."""
        return sum(int(limits(container).get(resource, 0)) for container in self.containers)


def limits(container: Mapping[str, Any]) -> dict[str, Any]:
    """Resource limits of a container."""
    return (container.get("resources") or {}).get("limits") or {}


def requests(container: Mapping[str, Any]) -> dict[str, Any]:
    """Resource requests of a container."""
    return (container.get("resources") or {}).get("requests") or {}


def env(container: Mapping[str, Any]) -> dict[str, Any]:
    """Variables of a container: name to value, or to the `valueFrom` mapping."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container.get("env") or []}


def nested(values: Values) -> dict[str, Any]:
    """`{"a.b": 1}` as `{"a": {"b": 1}}`; values that are mappings are taken as they are."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        section = made
        *above, last = name.split(".")
        for key in above:
            section = section.setdefault(key, {})
        if isinstance(value, Mapping) and isinstance(section.get(last), dict):
            section[last].update(copy.deepcopy(dict(value)))
        else:
            section[last] = copy.deepcopy(value)
    return made


def text(
    layout: str | None,
    values: Values | None = None,
    *,
    release: str = "lingoss",
    namespace: str = "lingoss",
    kubernetes: str = KUBERNETES,
    apis: tuple[str, ...] | None = None,
    version: int = 4,
    chart: Path = CHART,
    upgrade: bool = False,
) -> str:
    """What `helm template` prints for a layout file and values on top of it. Raises RenderError with Helm's message."""
    arguments = ["--namespace", namespace, "--kube-version", kubernetes]
    spelled = f"sagemaker.amazonaws.com/v1/{(values or {}).get('sft.hyperpod.kind', 'HyperPodPyTorchJob')}"
    arguments += [
        argument for api in ((*APIS, spelled) if apis is None else apis) for argument in ("--api-versions", api)
    ]
    arguments += ["--is-upgrade"] if upgrade else []
    return _helm(version, ["template", release], chart, layout, values, arguments)


def notes(layout: str | None, values: Values | None = None, *, namespace: str = "lingoss") -> str:
    """What NOTES.txt says after an install. Raises RenderError.

    `helm template` does not print it; `helm install --dry-run` does, with Helm 4 without a cluster.
    """
    wanted = {**(values or {}), "global.checkCRDs": False}
    arguments = ["--namespace", namespace, "--dry-run=client", "--hide-secret"]
    _, mark, said = _helm(4, ["install", "lingoss"], CHART, layout, wanted, arguments).partition("\nNOTES:\n")
    if not mark:
        raise RenderError("Helm printed no NOTES")
    return said


def render(layout: str | None, values: Values | None = None, **options: Any) -> list[Manifest]:
    """The manifests of `text`, hooks and tests included. Read only: all callers share them."""
    return parsed(text(layout, values, **options))


def refusal(layout: str | None, values: Values | None = None, **options: Any) -> str:
    """The message with which Helm refuses the values. AssertionError when it renders them."""
    try:
        text(layout, values, **options)
    except RenderError as error:
        return str(error)
    raise AssertionError(f"rendered, although it must be refused: {layout} with {dict(values or {})}")


@cache
def parsed(rendered: str) -> list[Manifest]:
    """The manifests of a rendered text. Read only: all callers share them."""
    return [manifest for manifest in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if manifest]


def _helm(
    version: int, verb: list[str], chart: Path, layout: str | None, values: Values | None, arguments: list[str]
) -> str:
    program = helm.helm4() if version == 4 else helm.helm3()
    given = json.dumps(nested(values or {}), sort_keys=True)
    file = LAYOUTS[layout].read_text() if layout else ""
    key = json.dumps([str(program), verb, file, given, arguments]).encode()
    files = ["-f", str(LAYOUTS[layout])] if layout else []
    command = [str(program), *verb, str(chart), *arguments, *files, "-f", "-"]
    return _kept(RENDERS / _digest(chart) / hashlib.sha256(key).hexdigest(), tuple(command), given)


@cache
def _kept(place: Path, command: tuple[str, ...], given: str) -> str:
    """What a command printed; kept in a file, so that it runs once however many tests and workers ask."""
    if place.exists():
        status, _, said = place.read_text().partition("\n")
    else:
        # A render ends before Go's garbage matters: without its collection it takes a quarter less time.
        environment = {**os.environ, "GOGC": "off"}
        done = subprocess.run(
            command, check=False, input=given, text=True, capture_output=True, timeout=120, env=environment
        )
        status, said = ("ok", done.stdout) if done.returncode == 0 else ("refused", done.stderr)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as half:
            half.write(f"{status}\n{said}")
        Path(half.name).rename(place)
    if status != "ok":
        raise RenderError(said.strip())
    return said


def forget(keep: int = 4) -> None:
    """Delete the renders of all but the newest few states of the chart."""
    states = sorted(RENDERS.glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in states[keep:]:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _digest(chart: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(chart.rglob("*")):
        if file.is_file() and file.name != "README.md":
            digest.update(f"{file.relative_to(chart)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def pods(manifests: list[Manifest]) -> list[Pod]:
    """Every pod template of the manifests. Found by shape, so that a new kind of workload cannot slip by."""
    return [pod for manifest in manifests for pod in _pods(manifest, manifest, "")]


def _pods(owner: Manifest, value: Any, place: str) -> Iterator[Pod]:
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield Pod(owner, place or ".", value.get("metadata") or {}, spec)
            return
        for key, inner in value.items():
            yield from _pods(owner, inner, f"{place}.{key}")
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _pods(owner, inner, f"{place}[{position}]")


def identifier(manifest: Manifest) -> str:
    """Kind/name of a manifest."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def of_kind(manifests: list[Manifest], *kinds: str) -> list[Manifest]:
    """The manifests of some kinds."""
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


RUN_ONCE = ("Job", "RayJob", "HyperPodPyTorchJob", "HyperPodPytorchJob")


def is_hook(manifest: Manifest) -> bool:
    """Whether Helm runs the object as a hook (the guard, tests) and not as part of the release."""
    return "helm.sh/hook" in (manifest["metadata"].get("annotations") or {})


def run_once(manifests: list[Manifest]) -> list[Manifest]:
    """The workloads that run to an end and are named by their content; hooks are named anew each time."""
    return [manifest for manifest in of_kind(manifests, *RUN_ONCE) if not is_hook(manifest)]


@cache
def layout(name: str) -> dict[str, Any]:
    """The values of a layout file."""
    loaded: dict[str, Any] = yaml.safe_load(LAYOUTS[name].read_text())
    return loaded


def count(pod: Pod) -> int:
    """How many pods of this template run at once."""
    kind, spec = pod.owner["kind"], pod.owner["spec"]
    if kind == "Deployment":
        return int(spec["replicas"])
    if kind == "Job":
        return int(spec.get("parallelism", 1))
    if kind == "RayJob":
        group = re.fullmatch(r"\.spec\.rayClusterSpec\.workerGroupSpecs\[(\d+)\]\.template", pod.place)
        return int(spec["rayClusterSpec"]["workerGroupSpecs"][int(group[1])]["replicas"]) if group else 1
    if kind in RUN_ONCE:
        replica = re.fullmatch(r"\.spec\.replicaSpecs\[(\d+)\]\.template", pod.place)
        return int(spec["replicaSpecs"][int(replica[1])]["replicas"]) if replica else 1
    if kind == "Pod":
        return 1
    raise AssertionError(f"how many pods does a {kind} run?")


def gibibytes(quantity: str) -> float:
    """A memory quantity such as `340Gi` in GiB."""
    number, unit = str(quantity)[:-2], str(quantity)[-2:]
    return float(number) * {"Ki": 2**-20, "Mi": 2**-10, "Gi": 1, "Ti": 2**10}[unit]


def cores(quantity: str | int) -> float:
    """A CPU quantity such as `4` or `500m` in cores."""
    text = str(quantity)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
