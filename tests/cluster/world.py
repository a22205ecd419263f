# SPDX-License-Identifier: MIT-0
"""What the scenarios look at: pods, GPUs, workloads."""

from __future__ import annotations

from pathlib import Path

from harness.api import Api, ApiError, Object
from harness.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
RUN_ONCE = (("batch/v1", "Job"), ("ray.io/v1", "RayJob"), ("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob"))
FINISHED = {"Complete", "Completed", "Failed", "SuccessCriteriaMet"}


def exists(api: Api, thing: Object) -> bool:
    """Whether an object is there."""
    meta = thing["metadata"]
    try:
        api.get(thing["apiVersion"], thing["kind"], meta.get("namespace"), meta["name"])
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True


def pods(api: Api, namespace: str, release: str, part: str = "") -> list[Object]:
    """Pods of a release that have not ended, of one part or of all."""
    selector = f"app.kubernetes.io/instance={release}" + (f",app.kubernetes.io/component={part}" if part else "")
    found = api.list("v1", "Pod", namespace, labelSelector=selector)
    return [pod for pod in found if pod["status"].get("phase") not in ("Succeeded", "Failed")]


def demand(pod: Object, resource: str) -> int:
    """How much of an extended resource a pod holds: the larger of its init containers and all containers together."""

    def of(container: Object) -> int:
        return int(container.get("resources", {}).get("limits", {}).get(resource, 0))

    spec = pod["spec"]
    return max(sum(map(of, spec["containers"])), *map(of, spec.get("initContainers", [])), 0)


def held(api: Api, namespace: str, release: str, resource: str = GPU) -> int:
    """How much of a resource the bound, not yet ended pods of a release hold."""
    return sum(demand(pod, resource) for pod in pods(api, namespace, release) if pod["spec"].get("nodeName"))


def settled(cluster: Cluster, namespace: str, release: str, part: str, count: int) -> list[Object]:
    """Wait until exactly `count` pods of a part run and none of the release waits; answers them."""

    def check() -> list[Object] | None:
        found = pods(cluster.api, namespace, release, part)
        running = [pod for pod in found if pod["status"].get("phase") == "Running"]
        return found if len(found) == len(running) == count else None

    try:
        return cluster.wait(f"{count} running pods of {release}/{part} in {namespace}", check, 90)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; pods: {told(cluster.api, namespace)}") from None


def told(api: Api, namespace: str) -> list[str]:
    """One line for each pod of a namespace: phase, node, and why it waits."""
    lines = []
    for pod in api.list("v1", "Pod", namespace):
        states = pod["status"].get("conditions") or []
        why = [s.get("message", "") for s in states if s["type"] == "PodScheduled" and s["status"] == "False"]
        waiting = [
            s["state"]["waiting"].get("reason", "")
            for s in (pod["status"].get("containerStatuses") or []) + (pod["status"].get("initContainerStatuses") or [])
            if "waiting" in s.get("state", {})
        ]
        lines.append(
            f"{pod['metadata']['name']} {pod['status'].get('phase')} on {pod['spec'].get('nodeName')} {why} {waiting}"
        )
    return lines


def workloads(api: Api, namespace: str, release: str) -> list[Object]:
    """All run-once objects of a release; hooks are gone by themselves."""
    found = []
    for version, kind in RUN_ONCE:
        try:
            found += api.list(version, kind, namespace, labelSelector=f"app.kubernetes.io/instance={release}")
        except LookupError:  # not installed on this cluster
            continue
    return found


def is_finished(thing: Object) -> bool:
    """Whether a run-once object has ended, by its own status."""
    status = thing.get("status") or {}
    if thing["kind"] == "RayJob":
        return status.get("jobDeploymentStatus") in ("Complete", "Failed")
    return any(c["type"] in FINISHED and c["status"] == "True" for c in status.get("conditions") or [])
