# SPDX-License-Identifier: MIT-0
"""Simulated nodes: real Node objects with the figures of GPU instances, whose pods kwok runs as kwok/stages.yaml says."""

from __future__ import annotations

from harness.api import Api, ApiError, Object, wait
from harness.instances import INSTANCES, SYSTEM_PODS

SIMULATED = "lingoss-test/simulated"
EXIT_CODE = "lingoss-test/exit-code"
STOP_AFTER = "lingoss-test/stop-after"
REAL = "lingoss-test/real"
HEALTH = "sagemaker.amazonaws.com/node-health-status"
# Pod knobs that send a pod to the reserved real node (`reserve`), and only there.
ON_REAL_NODE: Object = {
    "nodeSelector": {REAL: "true"},
    "tolerations": [{"key": REAL, "operator": "Exists", "effect": "NoSchedule"}],
}
_TAINT: Object = {"key": HEALTH, "value": "Unschedulable", "effect": "NoSchedule"}


def node(name: str, instance_type: str, group: str, zone: str) -> Object:
    """A Node as HyperPod labels one that passed its checks. Source of the labels: SageMaker's guide for EKS clusters."""
    figures = INSTANCES[instance_type].allocatable()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                SIMULATED: "true",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": instance_type,
                "topology.kubernetes.io/region": zone[:-1],
                "topology.kubernetes.io/zone": zone,
                "sagemaker.amazonaws.com/cluster-name": "simulated",
                "sagemaker.amazonaws.com/compute-type": "hyperpod",
                "sagemaker.amazonaws.com/instance-group-name": group,
                "sagemaker.amazonaws.com/deep-health-check-status": "Passed",
                HEALTH: "Schedulable",
            },
        },
        "status": {"capacity": figures, "allocatable": figures},
    }


def add(api: Api, instance_type: str, count: int, group: str = "", zone: str = "us-west-2a") -> list[str]:
    """Make `count` nodes of a type in an instance group (default: the type's short name) and wait until they are Ready.

    Nodes that are there already stay, so a larger count later adds the difference. Answers their names.
    """
    group = group or instance_type.removeprefix("ml.").replace(".", "-")
    names = [f"sim-{group}-{i}" for i in range(count)]
    for name in names:
        try:
            api.create(node(name, instance_type, group, zone))
        except ApiError as error:
            if error.code != 409:
                raise
    api.apply(_system_pods())
    for name in names:
        wait(f"node {name} to be Ready with its system pod", 60, lambda name=name: _ready(api, name))  # type: ignore[misc]
    return names


def _ready(api: Api, name: str) -> bool:
    conditions = api.get("v1", "Node", None, name)["status"].get("conditions") or []
    pods = api.list("v1", "Pod", "kube-system", fieldSelector=f"spec.nodeName={name},status.phase=Running")
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and bool(pods)


def _system_pods() -> Object:
    """One DaemonSet that takes from every simulated node what its system pods would take."""
    labels = {"app": "simulated-system"}
    container = {
        "name": "system",
        "image": "simulated",
        "resources": {"requests": SYSTEM_PODS, "limits": {"memory": SYSTEM_PODS["memory"]}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "simulated-system", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {SIMULATED: "true"},
                    "tolerations": [{"operator": "Exists"}],
                    "priorityClassName": "system-node-critical",
                    "containers": [container],
                },
            },
        },
    }


def set_health(api: Api, name: str, status: str) -> None:
    """Label a node as HyperPod's health agent does, e.g. `Unschedulable`; only that status carries the taint."""
    taints = [_TAINT] if status == "Unschedulable" else []
    target = api.get("v1", "Node", None, name)
    kept = [taint for taint in target["spec"].get("taints", []) if taint["key"] != HEALTH]
    api.merge(_ref(name), {"metadata": {"labels": {HEALTH: status}}, "spec": {"taints": kept + taints}})


def remove(api: Api, names: list[str]) -> None:
    """Take nodes away, and with them their pods, which no kubelet could stop any more."""
    for name in names:
        api.delete(_ref(name))
        for pod in api.list("v1", "Pod", fieldSelector=f"spec.nodeName={name}"):
            api.delete(pod, grace=0)


def reserve(api: Api, name: str) -> None:
    """Keep pods off a real node unless they carry `ON_REAL_NODE`: others would look for images that it does not have."""
    taint = {"key": REAL, "value": "true", "effect": "NoSchedule"}
    api.merge(_ref(name), {"metadata": {"labels": {REAL: "true"}}, "spec": {"taints": [taint]}})


def finish(api: Api, namespace: str, selector: str, code: int = 0) -> list[str]:
    """End the running simulated pods that `selector` (labels) chooses with exit status `code`. Answers their names."""
    pods = api.list("v1", "Pod", namespace, labelSelector=selector, fieldSelector="status.phase=Running")
    for pod in pods:
        api.merge(pod, {"metadata": {"annotations": {EXIT_CODE: str(code)}}})
    return [pod["metadata"]["name"] for pod in pods]


def _ref(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
