# SPDX-License-Identifier: MIT-0
"""The run-once workloads of a release, and whether each has finished, from the status that its controller writes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from lingoss.errors import LingossError
from lingoss.guard.api import Api, collection
from lingoss.guard.decide import EVALUATE, FAILED, FINISHED, GRPO, PREPARE, QUEUED, RUNNING, SFT, STARTING, Workload

Object = dict[str, Any]
COMPONENTS = {"prepare": PREPARE, "sft": SFT, "grpo": GRPO, "evaluate": EVALUATE, "report": EVALUATE}
"""Label app.kubernetes.io/component -> stage."""
COMPONENT, INSTANCE = "app.kubernetes.io/component", "app.kubernetes.io/instance"


def list_workloads(api: Api, namespace: str, release: str, kinds: Collection[str] | None = None) -> list[Workload]:
    """The workloads of `release` of these kinds (default: all); those of a kind that the cluster does not know are none.

    Raises:
        LingossError: the API server does not answer, denies access, or answers with something else than a list.
    """
    selector = urlencode({"labelSelector": f"{INSTANCE}={release},{COMPONENT} in ({','.join(COMPONENTS)})"})
    found = []
    for kind in KINDS:
        if kinds is not None and kind.name not in kinds:
            continue
        path = _path(kind, namespace)
        answer = api.get(f"{path}?{selector}")
        if answer is None and kind.built_in:
            raise LingossError(f"GET {path} at {api.server}: 404, this is no Kubernetes API server")
        items = (answer or {"items": []}).get("items")
        if not isinstance(items, list):
            raise LingossError(f"GET {path} at {api.server}: the answer holds no list of items")
        found += [_workload(kind, item) for item in items if not _is_owned(item)]
    return found


def stop(api: Api, namespace: str, workload: Workload) -> None:
    """Delete a workload with its pods. Raises LingossError when the API server does not let it."""
    kind = next(kind for kind in KINDS if kind.name == workload.kind)
    api.delete(f"{_path(kind, namespace)}/{quote(workload.name, safe='')}")


def job_state(job: Object) -> str:
    """batch/v1 Job."""
    status, ended = _part(job, "status"), _true(job)
    if ended & {"Complete", "Failed"}:
        return FAILED if "Failed" in ended else FINISHED
    if _part(job, "spec").get("suspend") or "Suspended" in ended:
        return QUEUED
    # A pod that is not ready may wait for a node or be in its init containers: only its own status would tell.
    return RUNNING if status.get("ready") else STARTING


def ray_job_state(job: Object) -> str:
    """ray.io/v1 RayJob: the fields of KubeRay's RayJobStatus."""
    deployment, program = (str(_part(job, "status").get(key) or "") for key in ("jobDeploymentStatus", "jobStatus"))
    # FAILED alone may still be tried again (backoffLimit); the deployment's status then says which.
    if deployment in ("Complete", "Failed", "ValidationFailed") or program in ("SUCCEEDED", "STOPPED"):
        return FINISHED if program in ("SUCCEEDED", "STOPPED") else FAILED
    if _part(job, "spec").get("suspend") or deployment in ("Suspending", "Suspended"):
        return QUEUED
    return RUNNING if deployment == "Running" else STARTING


def hyperpod_state(job: Object) -> str:
    """sagemaker.amazonaws.com/v1 HyperPodPyTorchJob."""
    true = _true(job)
    if true & {"Completed", "Failed"}:
        return FAILED if "Failed" in true else FINISHED
    if _part(_part(job, "spec"), "runPolicy").get("suspend"):
        return QUEUED
    return RUNNING if true & {"Running", "Faulted"} else STARTING


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of workload and how to read it."""

    name: str
    group: str
    plural: str
    state: Callable[[Object], str]
    built_in: bool = False


KINDS = (
    Kind("Job", "batch/v1", "jobs", job_state, built_in=True),
    Kind("RayJob", "ray.io/v1", "rayjobs", ray_job_state),
    Kind("HyperPodPyTorchJob", "sagemaker.amazonaws.com/v1", "hyperpodpytorchjobs", hyperpod_state),
)


def _path(kind: Kind, namespace: str) -> str:
    return collection(kind.group, namespace, kind.plural)


def _workload(kind: Kind, item: Object) -> Workload:
    metadata = _part(item, "metadata")
    component = str(_part(metadata, "labels").get(COMPONENT))
    # One that is being deleted has been stopped already.
    state = FINISHED if metadata.get("deletionTimestamp") else kind.state(item)
    return Workload(kind.name, str(metadata.get("name")), COMPONENTS.get(component, component), state)


def _is_owned(item: Object) -> bool:
    """Whether another object made it, as KubeRay makes the Job that submits: its owner is what counts."""
    return bool(_part(item, "metadata").get("ownerReferences"))


def _part(item: Any, key: str) -> Object:
    found = item.get(key) if isinstance(item, dict) else None
    return found if isinstance(found, dict) else {}


def _true(item: Object) -> set[str]:
    """The types of all conditions that hold."""
    conditions = _part(item, "status").get("conditions")
    found = conditions if isinstance(conditions, list) else []
    return {str(one.get("type")) for one in found if isinstance(one, dict) and one.get("status") == "True"}
