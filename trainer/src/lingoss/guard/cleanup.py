# SPDX-License-Identifier: MIT-0
"""Before uninstall: remove whatever of the release is left, also what Helm no longer knows of."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from lingoss.errors import LingossError
from lingoss.guard import api
from lingoss.guard.workloads import INSTANCE, list_workloads, stop

NAME = "app.kubernetes.io/name"
HOOK, POLICY = "helm.sh/hook", "helm.sh/resource-policy"
KINDS = (
    ("Deployment", "apps/v1", "deployments"),
    ("Service", "v1", "services"),
    ("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
    ("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    ("ConfigMap", "v1", "configmaps"),
    ("ServiceAccount", "v1", "serviceaccounts"),
)
"""What a stage brings beside its run-once workloads, the server that holds GPUs first."""


def clean_up(release: str, namespace: str, kinds: Sequence[str] | None = None) -> int:
    """Delete what `release` has in `namespace`, and tell of each; 0, or 1 with one line when the API server objects.

    `kinds`: those of run-once workloads that it may have had (default: all).

    Helm uninstalls what its *last* revision holds. After an upgrade that failed or was refused that is the new stage,
    which never began, and the old one would go on with its GPUs (helm/helm, `action/uninstall.go`). Claims stay, and so
    does what carries no label of this release and of this chart, belongs to a hook, or is marked to be kept.
    """
    try:
        server = api.in_cluster()
        for workload in list_workloads(server, namespace, release, kinds):
            stop(server, namespace, workload)
            print(f"deleted {workload.kind} {workload.name} ({workload.state})", flush=True)
        selector = urlencode({"labelSelector": f"{INSTANCE}={release},{NAME}=lingoss"})
        for kind, group, plural in KINDS:
            path = api.collection(group, namespace, plural)
            for name in _ours((server.get(f"{path}?{selector}") or {}).get("items")):
                server.delete(f"{path}/{quote(name, safe='')}")
                print(f"deleted {kind} {name}", flush=True)
    except LingossError as error:
        print(f"something may be left: {error}; uninstall with --no-hooks and delete it by hand", flush=True)
        return 1
    return 0


def _ours(items: Any) -> list[str]:
    """Names of the listed objects that may go."""
    found = []
    for item in items if isinstance(items, list) else []:
        metadata = item.get("metadata") or {}
        if not {HOOK, POLICY} & set(metadata.get("annotations") or {}):
            found.append(str(metadata["name"]))
    return found
