# SPDX-License-Identifier: MIT-0
"""Names, labels, selectors and queues of all objects of all renders, and what each stage renders at all."""

import re
from collections import Counter
from typing import Any

import charts
from charts import Pod

from cases import EXTRA, KINDS, MATRIX, VARIANTS, Case, each, everywhere

GPU = "nvidia.com/gpu"

SELECTED_BY = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")


@everywhere
def test_no_two_objects_have_the_same_name(case: Case) -> None:
    names = Counter((*charts.identifier(manifest).split("/"), manifest["apiVersion"]) for manifest in case.manifests())
    assert [name for name, count in names.items() if count > 1] == []


@each(KINDS)
def test_objects_stand_in_the_namespace_of_the_release(case: Case) -> None:
    cluster_wide = {"PersistentVolume", "StorageClass"}
    for manifest in case.manifests(release="other-lingoss"):
        wanted = None if manifest["kind"] in cluster_wide else case.namespace
        assert manifest["metadata"].get("namespace") == wanted, charts.identifier(manifest)


@each(KINDS)
def test_pods_carry_the_three_labels_that_select_them(case: Case) -> None:
    for pod in case.pods(release="other-lingoss"):
        assert pod.labels.get(SELECTED_BY[0]) == "lingoss", pod.name
        assert pod.labels.get(SELECTED_BY[1]) == "other-lingoss", pod.name
        assert re.fullmatch(r"[a-z][a-z-]{1,30}", pod.labels.get(SELECTED_BY[2], "")), pod.name


def matches(selector: dict[str, str], pod: Pod) -> bool:
    """Whether a selector picks the pods of a template, with the labels that KubeRay and the Job controller add."""
    added = {"batch.kubernetes.io/job-name": pod.owner["metadata"]["name"], "ray.io/node-type": "worker"}
    if pod.place.endswith("headGroupSpec.template"):
        added["ray.io/node-type"] = "head"
    count = charts.count(pod) if pod.owner["kind"] == "Job" else 0
    index = selector.get("batch.kubernetes.io/job-completion-index", "0")
    wanted = {key: value for key, value in selector.items() if key != "batch.kubernetes.io/job-completion-index"}
    return wanted.items() <= (pod.labels | added).items() and int(index) <= max(count - 1, 0)


def selectors(manifests: list[charts.Manifest]) -> list[tuple[str, dict[str, str]]]:
    """Every label selector that picks pods of the release, with the object that holds it."""
    found: list[tuple[str, dict[str, str]]] = []
    for manifest in manifests:
        spec, name = manifest.get("spec") or {}, charts.identifier(manifest)
        if manifest["kind"] == "Service":
            found.append((name, spec["selector"]))
        elif manifest["kind"] in ("Deployment", "PodDisruptionBudget"):
            found.append((name, spec["selector"]["matchLabels"]))
        elif manifest["kind"] == "NetworkPolicy":
            found.append((name, spec["podSelector"].get("matchLabels", {})))
            for rule in [*(spec.get("ingress") or []), *(spec.get("egress") or [])]:
                for peer in [*rule.get("from", []), *rule.get("to", [])]:
                    if "podSelector" in peer and "namespaceSelector" not in peer:
                        found.append((f"{name} peer", peer["podSelector"].get("matchLabels", {})))
    return found


@everywhere
def test_selectors_match_pods_of_this_release_only(case: Case) -> None:
    manifests = case.manifests()
    pods = charts.pods(manifests)
    for name, selector in selectors(manifests):
        if name.endswith("peer") and not selector:
            continue  # an empty peer is the whole namespace, on purpose
        assert selector.get(SELECTED_BY[1]) == "lingoss", f"{name} selects pods of other releases: {selector}"
        matched = [pod for pod in pods if matches(selector, pod)]
        # The policies of training stay when their stage is left, for pods that save before they end.
        left = name.startswith("NetworkPolicy") and selector.get(SELECTED_BY[2]) in {"sft", "grpo"} - {case.stage}
        on_ray = "ray.io/node-type" not in selector or charts.of_kind(manifests, "RayJob")
        assert matched or left or not on_ray, f"{name} selects no pod: {selector}"
        if not name.startswith("NetworkPolicy"):
            assert len({pod.part for pod in matched}) == 1, f"{name} selects pods of several parts"


@everywhere
def test_deployments_select_their_own_pods(case: Case) -> None:
    for deployment in charts.of_kind(case.manifests(), "Deployment"):
        selector, template = (deployment["spec"]["selector"]["matchLabels"], deployment["spec"]["template"])
        assert set(selector) == set(SELECTED_BY)
        assert selector.items() <= template["metadata"]["labels"].items()


@everywhere
def test_names_of_what_runs_once_end_in_a_hash_and_fit(case: Case) -> None:
    for manifest in charts.run_once(case.manifests()):
        name = manifest["metadata"]["name"]
        assert re.fullmatch(r"[a-z][a-z0-9-]*-[0-9a-f]{8}", name), name
        assert len(name) <= (47 if manifest["kind"] == "RayJob" else 63), name


@everywhere
def test_all_names_and_labels_are_legal(case: Case) -> None:
    for manifest in case.manifests():
        name = manifest["metadata"]["name"]
        assert len(name) <= 63, name
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name), name
        for value in (manifest["metadata"].get("labels") or {}).values():
            assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value), f"{name}: {value}"


def keys(value: Any) -> set[str]:
    """All keys of nested mappings."""
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in keys(inner)}
    return {key for inner in value for key in keys(inner)} if isinstance(value, list) else set()


@everywhere
def test_suspend_is_left_to_kueue(case: Case) -> None:
    assert "suspend" not in keys(case.manifests())


@everywhere
def test_workloads_carry_the_queue_where_one_is_given(case: Case) -> None:
    scheme, queue = (case.values.get("global.queue.scheme", "kueue"), case.values.get("global.queue.name", ""))
    if scheme == "hyperpod" and not queue:
        queue = f"hyperpod-ns-{case.values['global.queue.team']}-localqueue"
    for manifest in case.manifests():
        if not charts.pods([manifest]) or charts.is_hook(manifest):
            continue
        on_gpu = any(pod.amount(GPU) for pod in charts.pods([manifest]))
        found = manifest["metadata"]["labels"].get("kueue.x-k8s.io/queue-name", "")
        assert found == queue if on_gpu else found in ("", queue), charts.identifier(manifest)


@each([case for case in MATRIX if "-none" in case.name])
def test_stage_none_runs_nothing(case: Case) -> None:
    left = [pod.name for pod in case.pods() if not charts.is_hook(pod.owner)]
    assert left == []


@each([case for case in MATRIX if "-none" not in case.name])
def test_every_other_stage_runs_something(case: Case) -> None:
    assert [pod for pod in case.pods() if not charts.is_hook(pod.owner)]


def test_the_variants_cover_every_switch() -> None:
    """A variant that renders as the plain layout does shows nothing; an example may, where nothing runs."""
    examples = [f"{name}-none" for name in charts.EXAMPLES]
    for case in EXTRA:
        if case.name in examples:
            continue
        kept = ("global.stage", "grpo.engine") if case.name in VARIANTS else ("global.stage",)
        plain = {name: value for name, value in case.values.items() if name in kept}
        shown = case.text(upgrade=case.upgrade)
        assert shown != charts.text(case.layout, plain, namespace=case.namespace), case.name
