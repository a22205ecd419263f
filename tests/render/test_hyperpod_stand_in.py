# SPDX-License-Identifier: MIT-0
"""The stand-in's decisions, without a cluster: what it makes, deletes and reports for a job in each situation."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harness.hyperpod.definition import definition
from harness.hyperpod.plan import QUEUE, plan, pods_of, true_states, workload_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
QUEUED = {QUEUE: "team"}


def job(policy: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    container = {"name": "trainer", "image": "i", "env": [{"name": "A", "value": "1"}]}
    template = {"metadata": {"labels": {"app": "x"}, "annotations": {"n": "1"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": "j", "namespace": "n", "uid": "u", "labels": labels or {}},
        "spec": {
            "replicaSpecs": [{"name": "pods", "replicas": 2, "maxReplicas": 4, "spares": 1, "template": template}],
            "runPolicy": policy or {},
        },
        "status": status,
    }


def seen(**status: Any) -> dict[str, Any]:
    """A status as the stand-in leaves it after the first look."""
    entry = {"type": "Created", "status": "True", "lastTransitionTime": "t", "message": "", "reason": "Created"}
    return {"conditions": [entry], "startTime": "t", "restartCount": 0} | status


def ended(state: str) -> dict[str, Any]:
    entry = {"type": state, "status": "True", "lastTransitionTime": "t", "message": "", "reason": state}
    return seen(conditions=[*seen()["conditions"], entry], completionTime="2026-01-02T03:04:05Z")


def pods(*phases: str) -> list[dict[str, Any]]:
    return [
        {"metadata": {"name": f"j-pods-{i}"}, "status": {"phase": phase, "podIP": f"10.0.0.{i}"}}
        for i, phase in enumerate(phases)
    ]


def last_state(status: dict[str, Any] | None) -> str:
    assert status is not None
    return str([item["type"] for item in status["conditions"] if item["status"] == "True"][-1])


def test_a_new_job_gets_its_pods_and_is_created() -> None:
    result = plan(job(), [], None, NOW)
    assert [pod["metadata"]["name"] for pod in result.create] == ["j-pods-0", "j-pods-1"]
    assert last_state(result.status) == "Created"
    assert result.status is not None
    assert result.status["startTime"] == "2026-01-02T03:04:05Z"


def test_pods_carry_number_of_nodes_owner_and_labels_and_nothing_of_elasticity() -> None:
    first, _ = pods_of(job(labels=QUEUED))
    assert first["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "NNODES", "value": "2"}]
    assert first["metadata"]["labels"] == {"app": "x", "HPJob": "j", "lingoss-test/replica-spec": "pods"} | QUEUED
    assert first["metadata"]["annotations"] == {"n": "1"}
    assert first["metadata"]["ownerReferences"][0]["uid"] == "u"


def test_a_set_number_of_nodes_stays() -> None:
    given = job()
    given["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "NNODES", "value": "7"}]
    assert pods_of(given)[0]["spec"]["containers"][0]["env"] == [{"name": "NNODES", "value": "7"}]


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        (("Pending", "Running"), "Created"),
        (("Running", "Running"), "Running"),
        (("Succeeded", "Running"), "Running"),
        (("Succeeded", "Succeeded"), "Completed"),
        (("Failed", "Running"), "Failed"),
    ],
)
def test_state_follows_the_pods(phases: tuple[str, str], state: str) -> None:
    given = job(**seen())
    result = plan(given, pods(*phases), None, NOW)
    assert last_state(result.status or given["status"]) == state
    assert result.create == []


def test_a_failed_pod_restarts_the_job_while_retries_are_left() -> None:
    first = plan(job({"jobMaxRetryCount": 1}, **seen()), pods("Failed", "Running"), None, NOW)
    assert last_state(first.status) == "Faulted"
    assert first.status is not None
    assert first.status["restartCount"] == 1
    assert len(first.delete) == 2
    second = plan(job({"jobMaxRetryCount": 1}, **first.status), pods("Failed", "Running"), None, NOW)
    assert last_state(second.status) == "Failed"
    assert second.delete == []


def test_a_pod_that_is_being_deleted_is_not_a_second_failure() -> None:
    going = pods("Failed", "Failed")
    for pod in going:
        pod["metadata"]["deletionTimestamp"] = "t"
    result = plan(job({"jobMaxRetryCount": 1}, **seen(restartCount=1)), going, None, NOW)
    assert (result.delete, result.create, result.status) == ([], [], None)


def test_suspension_takes_the_pods_away() -> None:
    result = plan(job({"suspend": True}, **seen()), pods("Running", "Running"), None, NOW)
    assert len(result.delete) == 2
    assert last_state(result.status) == "Suspended"


@pytest.mark.parametrize(
    ("policy", "deleted"), [({}, 2), ({"cleanPodPolicy": "All"}, 2), ({"cleanPodPolicy": "None"}, 0)]
)
def test_clean_pod_policy(policy: dict[str, str], deleted: int) -> None:
    result = plan(job(policy, **ended("Completed")), pods("Succeeded", "Succeeded"), None, NOW)
    assert len(result.delete) == deleted
    assert result.create == []


@pytest.mark.parametrize(
    ("ttl", "later", "gone"),
    [(60, 59, False), (60, 60, True), (-1, 10**6, False), (0, 10**6, False), (None, 10**6, False)],
)
def test_time_to_live(ttl: int | None, later: int, gone: bool) -> None:
    given = job({"ttlSecondsAfterFinished": ttl}, **ended("Failed"))
    assert plan(given, [], None, NOW + timedelta(seconds=later)).delete_job is gone


def test_a_queued_job_waits_for_kueue() -> None:
    waiting = plan(job(labels=QUEUED, **seen()), [], None, NOW)
    assert waiting.patch == {"spec": {"runPolicy": {"suspend": True}}}
    assert waiting.create == []
    admitted = {"status": {"conditions": [{"type": "Admitted", "status": "True"}]}, "nodeLabels": {"pods": {"g": "p5"}}}
    released = plan(job({"suspend": True}, QUEUED, **seen()), [], admitted, NOW)
    assert released.patch == {"spec": {"runPolicy": {"suspend": False}}}
    running = plan(job({"suspend": False}, QUEUED, **seen()), [], admitted, NOW)
    assert [pod["spec"]["nodeSelector"] for pod in running.create] == [{"g": "p5"}] * 2


def test_an_evicted_job_is_suspended_again() -> None:
    evicted = {"status": {"conditions": [{"type": "Admitted", "status": "False"}]}}
    result = plan(job({"suspend": False}, QUEUED, **seen()), pods("Running", "Running"), evicted, NOW)
    assert result.patch == {"spec": {"runPolicy": {"suspend": True}}}


def test_the_workload_counts_spares() -> None:
    made = workload_of(job(labels=QUEUED | {"kueue.x-k8s.io/priority-class": "high"}))
    assert made["spec"]["podSets"][0]["count"] == 3
    assert made["spec"]["queueName"] == "team"
    assert made["spec"]["priorityClassRef"]["name"] == "high"


def test_states_keep_created_first_and_one_other_true() -> None:
    result = plan(job(**ended("Faulted")), pods("Running", "Running"), None, NOW)
    assert result.status is not None
    assert true_states(result.status) == {"Created", "Running"}


@pytest.mark.parametrize("kind", ["HyperPodPyTorchJob", "HyperPodPytorchJob"])
def test_definition_is_structural_in_both_spellings(kind: str) -> None:
    made = definition(kind)
    assert made["metadata"]["name"] == "hyperpodpytorchjobs.sagemaker.amazonaws.com"
    assert made["spec"]["names"]["kind"] == kind
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert "additionalProperties" not in spec
    pod = spec["properties"]["replicaSpecs"]["items"]["properties"]["template"]["properties"]["spec"]
    assert pod == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind 'PyTorchJob'"):
        definition("PyTorchJob")
