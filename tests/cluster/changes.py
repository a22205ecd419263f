# SPDX-License-Identifier: MIT-0
"""What a change of a release did: which objects are still the same ones, what Helm said, in which order pods came and went."""

from __future__ import annotations

import json
import re
import subprocess

from cluster import world
from cluster.release import Release
from harness.api import Object
from harness.cluster import Cluster

FLAG = "--set guard.force=true"
GATE_FLAG = "--set grpo.config.gate.force=true,guard.force=true"
HOOK_KINDS = (
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
)


def identities(one: Release, part: str) -> dict[str, str]:
    """Name and UID of a part's run-once object and of its pods: what an undisturbed stage keeps."""
    things = [one.workload(part), *world.pods(one.api, one.namespace, one.name, part)]
    return {f"{thing['kind']}/{thing['metadata']['name']}": thing["metadata"]["uid"] for thing in things}


def refusals(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of a failed Helm command that name the flag which overrides the guard.

    Helm 4 quotes a hook's log as one field of its own: level=INFO msg="line\\nline".
    """
    assert done.returncode == 1, f"Helm exits with {done.returncode}: {done.stdout}{done.stderr}"
    said = f"{done.stdout}\n{done.stderr}"
    said = re.sub(r'^level=\S+ msg=("(?:[^"\\]|\\.)*")', lambda found: str(json.loads(found[1])), said, flags=re.M)
    return [line for line in said.splitlines() if line.endswith((FLAG, GATE_FLAG))]


def no_hooks(one: Release) -> None:
    """Wait until no object of a hook is left."""
    selector = f"app.kubernetes.io/instance={one.name},app.kubernetes.io/component in (guard,cleanup)"

    def left() -> list[str]:
        things = [thing for kind in HOOK_KINDS for thing in one.api.list(*kind, one.namespace, labelSelector=selector)]
        return [f"{thing['kind']}/{thing['metadata']['name']}" for thing in things]

    one.cluster.wait(f"no hook object to be left in {one.namespace}: {left()}", lambda: not left(), 30)


def now(cluster: Cluster) -> str:
    """The server's present, from which `pod_history` can tell."""
    return str(cluster.api.raw("GET", "/api/v1/pods", limit="1")["metadata"]["resourceVersion"])


def pod_history(cluster: Cluster, namespace: str, since: str) -> list[tuple[str, Object]]:
    """Every change of a namespace's pods since then, in order: ADDED, MODIFIED or DELETED, and the pod as it was."""
    path = f"/api/v1/namespaces/{namespace}/pods?watch=1&resourceVersion={since}&timeoutSeconds=1"
    lines = cluster.kubectl("get", "--raw", path).splitlines()
    return [(event["type"], event["object"]) for event in map(json.loads, lines)]


def config_maps(one: Release, stage: str) -> list[str]:
    """Names of the ConfigMaps of a stage."""
    selector = f"app.kubernetes.io/instance={one.name},app.kubernetes.io/component={stage}"
    return [
        thing["metadata"]["name"] for thing in one.api.list("v1", "ConfigMap", one.namespace, labelSelector=selector)
    ]
