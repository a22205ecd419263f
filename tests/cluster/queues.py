# SPDX-License-Identifier: MIT-0
"""A Kueue queue of a namespace, with a quota of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cluster import world
from harness.api import Api, Object

KUEUE = "kueue.x-k8s.io/v1beta2"


@contextmanager
def gpu_queue(api: Api, namespace: str, gpus: int) -> Iterator[str]:
    """Answers the value that submits to a queue with exactly so many GPUs; flavor and cluster queue are named as the namespace."""
    resources = {"cpu": 2000, "memory": "20Ti", world.GPU: gpus, world.EFA: 1000}
    quota = [{"name": key, "nominalQuota": value} for key, value in resources.items()]
    groups = [{"coveredResources": list(resources), "flavors": [{"name": namespace, "resources": quota}]}]
    things: list[Object] = [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": namespace}, "spec": {}},
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": namespace},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups},
        },
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "gpu-queue", "namespace": namespace},
            "spec": {"clusterQueue": namespace},
        },
    ]
    try:
        for thing in things:
            api.apply(thing)
        yield "global.queue.name=gpu-queue"
    finally:
        for thing in reversed(things):
            api.delete(thing)
