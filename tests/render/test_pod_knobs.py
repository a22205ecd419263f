# SPDX-License-Identifier: MIT-0
"""The knobs of pods: the same for every workload (`global.pod` for all, `<workload>.pod` for one), so each is tried on each."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import charts
import pytest
from charts import Pod
from mutations import POD, SAMPLES, contexts, workloads

from cases import KINDS, Case, values

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
    # Pods that Helm waits for take none that stands beside all pods: test_hooks.py.
    "containers": lambda pod: [] if charts.is_hook(pod.owner) else [pod.spec.get("containers")],
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
    for case in KINDS:
        wrong = {f"{POD}.labels": {"app.kubernetes.io/component": "mine"}}
        for pod in case.pods(wrong):
            assert pod.part != "mine", pod.name
