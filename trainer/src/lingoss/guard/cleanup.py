# SPDX-License-Identifier: MIT-0
"""Before uninstall: stop whatever run-once workload of the release is left, also one that Helm no longer knows of."""

from lingoss.errors import LingossError
from lingoss.guard import api
from lingoss.guard.workloads import list_workloads, stop


def clean_up(release: str, namespace: str) -> int:
    """Delete the run-once workloads of `release`, and tell of each; 0, or 1 with one line when the API server objects.

    Helm uninstalls what its *last* revision holds. After an upgrade that failed or was refused that is the new stage,
    which never began, and the old stage would go on with its GPUs (helm/helm, `action/uninstall.go`).
    """
    try:
        server = api.in_cluster()
        for workload in list_workloads(server, namespace, release):
            stop(server, namespace, workload)
            print(f"deleted {workload.kind} {workload.name} ({workload.state})", flush=True)
    except LingossError as error:
        print(f"workloads may be left: {error}; uninstall with --no-hooks and delete them by hand", flush=True)
        return 1
    return 0
