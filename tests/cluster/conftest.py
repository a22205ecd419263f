# SPDX-License-Identifier: MIT-0
"""One cluster for all scenarios: a real node for the guard and prepare, simulated GPU nodes, real operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from cluster.release import IMAGE, Release
from cluster.world import exists
from harness import images, nodes, operators
from harness.api import Object
from harness.cluster import LocalCluster
from harness.components import NODE


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: every layout whole; `make test-all`, not CI")


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Control plane, one real node, KubeRay, Kueue, kwok, and the stand-in for the HyperPod operator."""
    cluster = LocalCluster.boot()
    try:
        nodes.reserve(cluster.api, NODE)
        operators.kwok(cluster)
        operators.kuberay(cluster)
        operators.kueue(cluster)
        operators.hyperpod(cluster)
        cluster.load(images.toolbox(IMAGE))
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def namespace(cluster: LocalCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own that enforces the restricted profile; it is gone afterwards, with all that is in it."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))[:40].strip("-")
    yield from _namespace(cluster, name)


@pytest.fixture
def other_namespace(cluster: LocalCluster, namespace: str) -> Iterator[str]:
    """A second namespace of the same kind."""
    yield from _namespace(cluster, f"{namespace}-2")


def _namespace(cluster: LocalCluster, name: str) -> Iterator[str]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    thing: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.api.create(thing)
    cluster.wait("the namespace's account", lambda: cluster.api.get("v1", "ServiceAccount", name, "default"))
    yield name
    cluster.api.delete(thing)
    cluster.wait(f"namespace {name} to be gone", lambda: not exists(cluster.api, thing), 120)


@pytest.fixture
def release(cluster: LocalCluster, namespace: str) -> Iterator[Callable[..., Release]]:
    """Makes releases in the test's namespace, each with a volume of its own; what is left of them is removed."""
    made: list[Release] = []

    def make(layout: str, name: str = "lingoss", space: str = namespace, **options: object) -> Release:
        made.append(Release(cluster, space, name, layout, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.remove()


@pytest.fixture
def layout_nodes(cluster: LocalCluster) -> Iterator[Callable[[str, int], list[str]]]:
    """Adds simulated nodes of a type, exactly so many; they go with the test."""
    added: list[str] = []

    def add(instance_type: str, count: int) -> list[str]:
        names = nodes.add(cluster.api, instance_type, count)
        added.extend(names)
        return names

    yield add
    nodes.remove(cluster.api, added)
