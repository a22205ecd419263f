# SPDX-License-Identifier: MIT-0
"""The knobs: what a value sets, and where it lands.

The knobs of pods are the same for every workload (`global.pod` for all of them, `<workload>.pod` for one), so each is
tried on each. All other values stand in knobs.yaml, one line of specification each.
"""

import copy
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import charts
import pytest
import yaml
from charts import Pod
from mutations import POD, SAMPLES, contexts, workloads

from cases import CASES, Case, values

TABLE = yaml.safe_load((Path(__file__).parent / "knobs.yaml").read_text())
KNOBS = [value.path[-1] for value in values()[POD].below]
CHOSEN = {"priorityClassName": "mutant", "terminationGracePeriodSeconds": 4242}


def sample(knob: str, mark: str = "mutant") -> Any:
    """A value for a knob; `mark` tells two of them apart."""
    value = values()[f"{POD}.{knob}"]
    if (knob, mark) == ("affinity", "other"):  # what stands deeper than a key is replaced, so take another key
        return {"podAffinity": SAMPLES["Affinity"]["podAntiAffinity"]}
    made = CHOSEN.get(knob) or ({"mutant": "x"} if "map" in value.hints else SAMPLES[value.hints["k8s"]])
    return json.loads(json.dumps(made).replace("mutant", mark))


def ours(pod: Pod) -> list[dict[str, Any]]:
    """The chart's own containers, without those that the knobs add."""
    return [container for container in pod.containers if not container["name"].startswith(("mutant", "other"))]


def contains(held: Any, wanted: Any) -> bool:
    """Whether every key, and every item of a list, of `wanted` is in `held`."""
    if isinstance(wanted, dict):
        return isinstance(held, dict) and all(contains(held.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(held, list) and all(any(contains(item, value) for item in held) for value in wanted)
    return bool(held == wanted)


# Where each knob lands: all places that must hold its value.
PLACES: dict[str, Callable[[Pod], list[Any]]] = {
    "labels": lambda pod: [pod.metadata.get("labels")],
    "annotations": lambda pod: [pod.metadata.get("annotations")],
    "env": lambda pod: [container.get("env") for container in ours(pod)],
    "envFrom": lambda pod: [container.get("envFrom") for container in ours(pod)],
    "volumeMounts": lambda pod: [container.get("volumeMounts") for container in ours(pod)],
    "containerSecurityContext": lambda pod: [container.get("securityContext") for container in ours(pod)],
    # All others are fields of the pod's spec of the same name.
}


def places(knob: str, pod: Pod) -> list[Any]:
    return PLACES[knob](pod) if knob in PLACES else [pod.spec.get(knob)]


@cache
def shown(workload: str) -> tuple[Case, frozenset[str]]:
    """A render in which the workload's knobs show, and the pods that they change (by kind, part and place)."""
    for case in contexts(workload):
        changed = differing(case, {f"{workload}.annotations": {"mutant": "x"}})
        if changed:
            return case, changed
    raise AssertionError(f"no render shows {workload}.annotations")


def key(pod: Pod) -> str:
    """Tells a pod from the others of a render, whatever hash its name ends in."""
    return f"{pod.owner['kind']}/{re.sub('-[0-9a-f]{8}$', '', pod.owner['metadata']['name'])} {pod.place}"


def differing(case: Case, more: charts.Values) -> frozenset[str]:
    plain = {key(pod): (pod.metadata, pod.spec) for pod in case.pods()}
    changed = {key(pod): (pod.metadata, pod.spec) for pod in case.pods(more)}
    assert plain.keys() == changed.keys()
    # A config's name may follow the change; that alone is no effect of a knob.
    return frozenset(name for name in plain if without_hashes(plain[name]) != without_hashes(changed[name]))


def without_hashes(value: Any) -> str:
    return re.sub("-[0-9a-f]{8}\\b", "", json.dumps(value, sort_keys=True))


@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("workload", workloads())
def test_a_knob_of_a_workload_lands_in_its_pods_only(workload: str, knob: str) -> None:
    case, own = shown(workload)
    more = {f"{workload}.{name}": sample(name) for name in KNOBS}
    for pod in case.pods(more):
        for held in places(knob, pod):
            assert contains(held, sample(knob)) is (key(pod) in own), f"{pod.name}: {held}"


@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("workload", workloads())
def test_a_knob_of_all_pods_lands_in_every_pod(workload: str, knob: str) -> None:
    case, _ = shown(workload)
    for pod in case.pods({f"{POD}.{name}": sample(name) for name in KNOBS}):
        for held in places(knob, pod):
            assert contains(held, sample(knob)), f"{pod.name}: {held}"


@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("workload", workloads())
def test_a_workloads_knob_is_added_to_that_of_all_pods_and_wins(workload: str, knob: str) -> None:
    case, own = shown(workload)
    everywhere = {f"{POD}.{name}": sample(name, "other") for name in KNOBS}
    here = {f"{workload}.{name}": sample(name) for name in KNOBS}
    for pod in case.pods({**everywhere, **here}):
        if key(pod) not in own:
            continue
        for held in places(knob, pod):
            assert contains(held, sample(knob)), f"{pod.name}: {held}"
            kept = values()[f"{POD}.{knob}"].default in ({}, [])  # mappings merge, lists follow one another
            if kept and sample(knob, "other") != sample(knob):
                assert contains(held, sample(knob, "other")), f"{pod.name}: {held}"
    both = {f"{POD}.labels": {"team": "all"}, f"{workload}.labels": {"team": "own"}}
    for pod in case.pods(both):
        assert pod.labels["team"] == ("own" if key(pod) in own else "all")


def test_labels_that_select_pods_cannot_be_overwritten() -> None:
    for case in CASES:
        wrong = {f"{POD}.labels": {"app.kubernetes.io/component": "mine"}}
        for pod in case.pods(wrong):
            assert pod.part != "mine", pod.name


def at(value: Any, path: str) -> Any:
    """What stands at `spec.containers[main].env[X].value`: in a list, [name] picks by name and [0] by position.

    None where the path leads nowhere. A key with dots stands in quotes: limits."nvidia.com/gpu".
    """
    for quoted, plain, item in re.findall(r'"([^"]+)"|([^.\[\]"]+)|\[([^\]]+)\]', path):
        if item and isinstance(value, list):
            named = [entry for entry in value if isinstance(entry, dict) and entry.get("name") == item]
            value = value[int(item)] if item.isdigit() and int(item) < len(value) else next(iter(named), None)
        else:
            value = value.get(quoted or plain) if isinstance(value, dict) else None
    return value


def chosen(manifests: list[charts.Manifest], wanted: str) -> list[charts.Manifest]:
    """The manifests that `Kind/part` names; the part is the component label, `*` any."""
    kind, _, part = wanted.partition("/")
    labelled = [
        (manifest, (manifest["metadata"].get("labels") or {}).get("app.kubernetes.io/component"))
        for manifest in manifests
    ]
    return [manifest for manifest, component in labelled if manifest["kind"] == kind and part in ("*", "", component)]


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: f"{entry['value']} = {json.dumps(entry['set'])}")
def test_value_sets(entry: dict[str, Any]) -> None:
    case = Case("", entry.get("layout", charts.BASE), tuple((entry.get("when") or {}).items()))
    manifests = case.manifests({entry["value"]: entry["set"]})
    plain = case.manifests()
    wanted = entry.get("is", entry["set"])
    if entry.get("absent"):
        assert chosen(plain, entry["of"])
        assert not chosen(manifests, entry["of"])
        return
    found = chosen(manifests, entry["of"])
    assert found, f"no {entry['of']} is rendered"
    for path in [entry["at"]] if isinstance(entry["at"], str) else entry["at"]:
        assert [at(manifest, path) for manifest in found] == [wanted] * len(found), path
        before = [at(manifest, path) for manifest in chosen(plain, entry["of"])]
        assert before != [wanted] * len(found), f"{path} is {wanted} without the value too"


def test_every_value_has_its_line_in_the_table() -> None:
    from test_values import MUTATED

    named = {entry["value"] for entry in TABLE}
    written = {
        leaf.name for leaf in MUTATED if "config" not in leaf.value.hints and not leaf.name.startswith(f"{POD}.")
    }
    missing = sorted(name for name in written if name not in named and not covered(name, named))
    assert missing == [], "say in knobs.yaml what these set"


def covered(name: str, named: set[str]) -> bool:
    """Whether a line speaks of a value or of all below it (`global.layout.*`)."""
    parts = name.split(".")
    return any(".".join([*parts[:depth], "*"]) in named for depth in range(1, len(parts)))


def test_the_table_names_values_that_there_are() -> None:
    from mutations import leaves

    names = {leaf.name for leaf in leaves()}
    unknown = [entry["value"] for entry in TABLE if copy.copy(entry["value"]) not in names]
    assert unknown == []
