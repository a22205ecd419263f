# SPDX-License-Identifier: MIT-0
"""One cluster for all scenarios: a real node for the guard and prepare, simulated GPU nodes, real operators."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import pytest

from cluster.release import Release
from harness import images, nodes, operators
from harness.api import Object
from harness.cluster import Cluster, LocalCluster, OnlyLocalError

_NUMBERS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: every layout whole; `make test-all`, not CI")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """A test that needs what only a local cluster can do is skipped on one of the user's."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """As in the set-up."""
    yield from _skipping()


def _skipping() -> Iterator[None]:
    try:
        yield
    except OnlyLocalError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Control plane, one real node, KubeRay, Kueue, kwok, and the stand-in for the HyperPod operator; or the user's."""
    with Cluster.start() as cluster:
        if isinstance(cluster, LocalCluster):
            operators.furnish(cluster)
            cluster.load(images.toolbox(images.TOOLBOX))
        else:
            operators.require(cluster.api)
        yield cluster


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own that enforces the restricted profile; afterwards it goes, with all that is in it."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))[:36].strip("-")
    yield from _namespace(cluster, f"{words}-{next(_NUMBERS)}")


@pytest.fixture
def other_namespace(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A second namespace of the same kind."""
    yield from _namespace(cluster, f"{namespace}-2")


def _namespace(cluster: Cluster, name: str) -> Iterator[str]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    thing: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.api.create(thing)
    cluster.wait("the namespace's account", lambda: cluster.api.get("v1", "ServiceAccount", name, "default"))
    yield name
    cluster.api.delete(thing)  # it takes some seconds to go; no later test has its name, so none waits for that


@pytest.fixture
def release(cluster: Cluster, namespace: str) -> Iterator[Callable[..., Release]]:
    """Makes releases in the test's namespace, each with a volume of its own; what is left of them is removed."""
    made: list[Release] = []

    def make(layout: str, name: str = "lingoss", space: str = namespace, **options: object) -> Release:
        made.append(Release(cluster, space, name, layout, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.remove()


@pytest.fixture
def layout_nodes(cluster: Cluster) -> Iterator[Callable[[str, int], list[str]]]:
    """Adds simulated nodes of a type, exactly so many; they go with the test."""
    added: list[str] = []

    def add(instance_type: str, count: int) -> list[str]:
        names = nodes.add(cluster.api, instance_type, count)
        added.extend(names)
        return names

    yield add
    nodes.remove(cluster.api, added)
