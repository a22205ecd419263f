# SPDX-License-Identifier: MIT-0
"""What the stand-in does for one HyperPodPyTorchJob: a pure function of the job, its pods and its Kueue workload.

A STAND-IN, not AWS's closed operator. It does what the chart's life cycle depends on: pods per replica spec, suspension,
completion, failure with `jobMaxRetryCount`, `cleanPodPolicy`, `ttlSecondsAfterFinished`, admission by Kueue. Where pods
really run, `ranks.py` leads their agents and its phase ends the job. It does not scale by itself between minReplicas and
maxReplicas, keep spares or read logs.
The conditions are Created, Suspended, Running, Faulted, Completed and Failed: AWS's CLI shows the last one that is True
and takes a job's age from `Created`; the other names are ours, since no public source lists AWS's.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime

from harness.api import Object
from harness.hyperpod.ranks import Memory, Policy

JOB_LABEL = "HPJob"  # by which AWS's CLI finds a job's pods
REPLICA_LABEL = "lingoss-test/replica-spec"
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"


@dataclass
class Plan:
    """The changes that bring the cluster nearer to what the job asks for; empty when there is nothing to do."""

    create: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    patch: Object | None = None
    status: Object | None = None
    delete_job: bool = False


def plan(job: Object, pods: list[Object], workload: Object | None, now: datetime, ranks: Memory | None = None) -> Plan:
    """Decide the next step. `pods` are the job's own; `workload` is its Kueue workload, if it has a queue and one; `ranks`
    is what is remembered of the agents, if any were asked.
    """
    result = Plan()
    status = copy.deepcopy(job.get("status") or {})
    policy = job["spec"].get("runPolicy") or {}
    if "Created" not in true_states(status):
        status = {"startTime": _text(now), "restartCount": 0}
        _enter(status, "Created", now, "the stand-in operator has seen the job")
    end = {"Completed", "Failed"} & true_states(status)
    if end:
        _after_the_end(result, job, pods, status, now)
    elif not _admitted(job, workload) and not policy.get("suspend"):
        result.patch = {"spec": {"runPolicy": {"suspend": True}}}
    elif _admitted(job, workload) and QUEUE in _labels(job) and policy.get("suspend"):
        result.patch = {"spec": {"runPolicy": {"suspend": False}}}
    elif policy.get("suspend"):
        result.delete = [pod for pod in pods if not _going(pod)]
        _enter(
            status, "Suspended", now, "waits for its queue" if QUEUE in _labels(job) else "runPolicy.suspend is true"
        )
    else:
        _run(result, job, pods, workload, status, now, ranks or Memory())
    if status != (job.get("status") or {}):
        result.status = status
    return result


def _run(
    result: Plan,
    job: Object,
    pods: list[Object],
    workload: Object | None,
    status: Object,
    now: datetime,
    ranks: Memory,
) -> None:
    if ranks.phase in ("completed", "failed"):  # agents end with 0 or are started again, whatever their ranks did
        status["completionTime"] = _text(now)
        _enter(status, ranks.phase.capitalize(), now, ranks.told[-1])
        return
    wanted = pods_of(job, workload)
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    failed = [pod for pod in pods if pod["status"].get("phase") == "Failed" and not _going(pod)]
    if failed:
        names = ", ".join(sorted(pod["metadata"]["name"] for pod in failed))
        if status["restartCount"] < ((job["spec"].get("runPolicy") or {}).get("jobMaxRetryCount") or 0):
            status["restartCount"] += 1
            _enter(status, "Faulted", now, f"failed: {names}; all pods start again")
            result.delete = [pod for pod in pods if not _going(pod)]
        else:
            status["completionTime"] = _text(now)
            _enter(status, "Failed", now, f"failed: {names}")
        return
    result.create = [pod for pod in wanted if pod["metadata"]["name"] not in by_name]
    phases = [by_name.get(pod["metadata"]["name"], {}).get("status", {}).get("phase") for pod in wanted]
    if all(phase == "Succeeded" for phase in phases):
        status["completionTime"] = _text(now)
        _enter(status, "Completed", now, "every pod succeeded")
    elif all(phase in ("Running", "Succeeded") for phase in phases):
        first = by_name[wanted[0]["metadata"]["name"]]
        status["masterAddr"] = first["status"].get("podIP", "")
        _enter(status, "Running", now, f"all {len(wanted)} pods run")
    else:
        _enter(status, "Created", now, "")


def _after_the_end(result: Plan, job: Object, pods: list[Object], status: Object, now: datetime) -> None:
    policy = job["spec"].get("runPolicy") or {}
    if policy.get("cleanPodPolicy", "All") == "All":
        result.delete = [pod for pod in pods if not _going(pod)]
    seconds = policy.get("ttlSecondsAfterFinished") or 0
    # -1 keeps the job; what AWS's operator does with 0 is not documented, so the stand-in keeps it too.
    if seconds > 0:
        result.delete_job = (now - datetime.fromisoformat(status["completionTime"])).total_seconds() >= seconds


def pods_of(job: Object, workload: Object | None = None) -> list[Object]:
    """The pods of a job: replica spec by replica spec, NNODES set to their number, the queue's node selector added."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    specs = job["spec"].get("replicaSpecs") or []
    total = nodes_of(job)
    result = []
    for spec in specs:
        for index in range(spec.get("replicas") or 0):
            template = copy.deepcopy(spec["template"])
            meta = template.get("metadata") or {}
            labels = dict(meta.get("labels") or {}) | {JOB_LABEL: name, REPLICA_LABEL: spec["name"]}
            labels |= {key: value for key, value in _labels(job).items() if key in (QUEUE, PRIORITY)}
            for container in template["spec"]["containers"]:
                env = container.setdefault("env", [])
                if not any(item["name"] == "NNODES" for item in env):
                    env.append({"name": "NNODES", "value": str(total)})
            selector = template["spec"].get("nodeSelector", {}) | _flavor_of(workload, spec["name"])
            if selector:
                template["spec"]["nodeSelector"] = selector
            result.append(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"{name}-{spec['name']}-{index}",
                        "namespace": namespace,
                        "labels": labels,
                        "annotations": dict(meta.get("annotations") or {}),
                        "ownerReferences": [owner(job)],
                    },
                    "spec": template["spec"],
                }
            )
    return result


def policy_of(job: Object) -> Policy:
    """What the agents of a job are led by; a job without elastic policy has one size."""
    elastic, run = job["spec"].get("elasticPolicy") or {}, job["spec"].get("runPolicy") or {}
    return Policy(
        sizes=elastic.get("replicaDiscreteValues") or [nodes_of(job)],
        graceful_seconds=elastic.get("gracefulShutdownTimeoutInSeconds") or 60,
        shrink_seconds=elastic.get("faultyScaleDownTimeoutInSeconds") or 0,
        retries=run.get("jobMaxRetryCount") or 0,
        log_rules=run.get("logMonitoringConfiguration") or [],
    )


def nodes_of(job: Object) -> int:
    """Pods that a job asks for now."""
    return sum(spec.get("replicas") or 0 for spec in job["spec"].get("replicaSpecs") or [])


def workload_of(job: Object) -> Object:
    """The Kueue workload that AWS's operator would make: one pod set per replica spec, spares counted."""
    sets = [
        {
            "name": spec["name"],
            "count": (spec.get("replicas") or 0) + (spec.get("spares") or 0),
            "template": {"metadata": {}, "spec": spec["template"]["spec"]},
        }
        for spec in job["spec"].get("replicaSpecs") or []
    ]
    spec: Object = {"queueName": _labels(job)[QUEUE], "podSets": sets}
    if PRIORITY in _labels(job):
        spec["priorityClassRef"] = {
            "group": "kueue.x-k8s.io",
            "kind": "WorkloadPriorityClass",
            "name": _labels(job)[PRIORITY],
        }
    meta = {
        "name": f"hyperpod-{job['metadata']['name']}",
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [owner(job)],
    }
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": meta, "spec": spec}


def owner(job: Object) -> Object:
    """A reference by which the garbage collector removes what belongs to the job."""
    meta = job["metadata"]
    identity = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": meta["name"], "uid": meta["uid"]}
    return identity | {"controller": True, "blockOwnerDeletion": True}


def true_states(status: Object) -> set[str]:
    """The condition types that are True."""
    return {item["type"] for item in status.get("conditions") or [] if item["status"] == "True"}


def _admitted(job: Object, workload: Object | None) -> bool:
    if QUEUE not in _labels(job):
        return True
    return workload is not None and "Admitted" in true_states(workload.get("status") or {})


def _flavor_of(workload: Object | None, name: str) -> dict[str, str]:
    """The node labels of the flavors that Kueue gave the pod set; `stand_in.py` has put them into the workload."""
    selectors: dict[str, dict[str, str]] = (workload or {}).get("nodeLabels", {})
    return selectors.get(name, {})


def _labels(thing: Object) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels") or {}
    return labels


def _going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _text(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _enter(status: Object, state: str, now: datetime, message: str) -> None:
    """Make `state` the last True condition; of the others only `Created` stays True, at its first time."""
    old: list[Object] = status.get("conditions", [])
    if [item["type"] for item in old if item["status"] == "True"][-1:] == [state]:
        return
    entry = {"type": state, "status": "True", "lastTransitionTime": _text(now), "message": message, "reason": state}
    if state == "Created" and old:
        entry = next(item for item in old if item["type"] == state)
    kept = [item if item["type"] == "Created" else item | {"status": "False"} for item in old if item["type"] != state]
    status["conditions"] = [*kept, entry]
