# SPDX-License-Identifier: MIT-0
"""Another valid value for every value of the chart, and the renders in which to look for its effect."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import charts
import yaml

from cases import FEW, Case, values
from values_comments import Value

_FILE = yaml.safe_load((Path(__file__).parent / "mutations.yaml").read_text())
UNREAD: dict[str, str] = _FILE["unread"]  # values that no render shows, with the reason
CHOSEN: dict[str, Any] = _FILE["values"]  # where a valid other value cannot be guessed from type and pattern

POD = "global.pod"
# One sample for each Kubernetes type that a comment names with @k8s, told apart from every default.
SAMPLES: dict[str, Any] = {
    "Affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"mutant": "x"}}}]}},
    "Container": [{"name": "mutant", "image": "example.org/mutant:1"}],
    "EnvFromSource": [{"configMapRef": {"name": "mutant"}}],
    "EnvVar": [{"name": "MUTANT", "value": "x"}],
    "LocalObjectReference": [{"name": "mutant"}],
    "LogMonitoringConfiguration": [{"name": "mutant", "logPattern": "mutant"}],
    "NetworkPolicyPeer": [{"namespaceSelector": {"matchLabels": {"mutant": "x"}}}],
    "PodSecurityContext": {"supplementalGroups": [4242]},
    "ResourceRequirements": {"requests": {"cpu": "333m"}, "limits": {"memory": "55555Mi"}},
    "SecurityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
    "Toleration": [{"key": "mutant", "operator": "Exists", "effect": "NoSchedule"}],
    "TopologySpreadConstraint": [{"maxSkew": 1, "topologyKey": "mutant", "whenUnsatisfiable": "ScheduleAnyway"}],
    "Volume": [{"name": "mutant", "emptyDir": {}}],
    "VolumeMount": [{"name": "mutant", "mountPath": "/mutant"}],
}  # fmt: skip
_STRINGS = ("mutant", "/mutant", "mutant/x", "17Gi", f"sha256:{'a' * 64}", "4242")


STAGE_OF = {
    "storage": "prepare",
    "sft": "sft",
    "grpo": "grpo",
    "kuberay": "grpo",
    "inference.evaluate": "evaluate",
    "inference.serve": "serve",
}
SHOWN_BY = {"kuberay": {"grpo", "openrlhf", "server"}}  # words of renders that show a section with none of its words


@dataclass(frozen=True)
class Leaf:
    """A value that a user can set: its full name, and the comment that describes it (elsewhere for @like)."""

    name: str
    value: Value = field(compare=False)

    def __str__(self) -> str:
        return self.name


def leaves() -> list[Leaf]:
    """Every value below which there is no other."""
    return [leaf for value in values().values() if len(value.path) == 1 for leaf in _leaves(value.name, value)]


def _leaves(name: str, value: Value) -> Iterator[Leaf]:
    if "like" in value.hints:
        yield from _leaves(name, values()[value.hints["like"]])
    elif value.below:
        for below in value.below:
            yield from _leaves(f"{name}.{below.path[-1]}", below)
    else:
        yield Leaf(name, value)


def workloads() -> list[str]:
    """The values that hold the pod knobs of one workload, such as `sft.pod`."""
    return [value.name for value in values().values() if value.hints.get("like") == POD]


def another(leaf: Leaf) -> Any:
    """A valid value that is not the default. AssertionError where mutations.yaml must name one."""
    value = leaf.value
    for name in (leaf.name, value.name):
        if name in CHOSEN:
            return CHOSEN[name]
    hints, default = value.hints, value.default
    if "config" in hints:
        return {"seed": 4242}
    if "k8s" in hints:
        return SAMPLES[hints["k8s"]]
    if "map" in hints:
        return {"mutant": 7 if "int" in hints["map"] else "x"}
    if "enum" in hints:
        return next(
            word for word in yaml.safe_load(f"[{', '.join(hints['enum'].split())}]") if word not in (default, "")
        )
    kinds = value.types
    if "boolean" in kinds:
        return not default
    if "string" in kinds and "integer" in kinds:  # numbers that an API wants as text
        return 4242
    if "integer" in kinds or "number" in kinds:
        low, high = float(hints.get("min", 0)), float(hints.get("max", "inf"))
        number = (default if default is not None else low) + 1
        number = number if number <= high else number - 2
        assert low <= number <= high, f"mutations.yaml must name another value for {leaf.name}"
        return int(number) if "integer" in kinds else number
    if "array" in kinds:
        return [*(default or []), "mutant"]
    for text in _STRINGS:
        if text != default and re.search(hints.get("pattern", ""), text):
            return text
    raise AssertionError(f"mutations.yaml must name another value for {leaf.name}")


def stage_of(name: str) -> str | None:
    """The stage to which a value belongs alone."""
    for prefix, stage in STAGE_OF.items():
        if name.startswith(f"{prefix}."):
            return stage
    return None


def contexts(name: str) -> list[Case]:
    """Renders in which a value may show: first those whose names share most words with its own."""
    wanted = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)} | SHOWN_BY.get(name.split(".")[0], set())
    stage = stage_of(name)
    return sorted(FEW, key=lambda case: (-len(wanted & set(re.findall(r"[a-z]+", case.name))), case.stage != stage))


@cache
def effect(leaf: Leaf) -> tuple[Case, str] | None:
    """The first render that another value of the leaf changes, and how: `manifests`, `notes` or what Helm refused."""
    value = another(leaf)
    cases = contexts(leaf.name)[: 12 if leaf.name in UNREAD else None]
    for case in cases:
        try:
            if case.text({leaf.name: value}) != case.text():
                return case, "manifests"
        except charts.RenderError as error:
            if "execution error at" not in str(error):  # not the words of the chart, but of the template engine
                raise
            return case, str(error)
    for case in cases:
        if case.notes({leaf.name: value}) != case.notes():
            return case, "notes"
    return None
