# SPDX-License-Identifier: MIT-0
"""One cluster with one real node, which has the image `toolbox-train` already, for all that runs in pods here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from cluster.world import exists
from e2e.release import Real
from harness import images, unpacked
from harness.api import Object
from harness.cluster import LocalCluster, existing

_FAILED = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: faults; `make test-all`, not CI")
    config.addinivalue_line("markers", "one_way: the tests of the module are steps, each of which needs those before")


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Control plane, DNS, and a kubelet that runs every pod."""
    if existing():
        pytest.skip("tests/e2e faults its node, so it runs on a cluster of its own")
    local = LocalCluster.boot(unpacked=unpacked.root(images.toolbox_train(images.TOOLBOX_TRAIN)))
    try:
        yield local
    finally:
        local.stop()


@pytest.fixture(scope="module")
def make_release(cluster: LocalCluster, request: pytest.FixtureRequest) -> Iterator[Callable[..., Real]]:
    """Makes releases, each in a namespace of its own that enforces the restricted profile; they go with the module."""
    made: list[Real] = []
    module = re.sub(r"[^a-z0-9]+", "-", request.module.__name__.rpartition("test_")[2])

    def make(sets: Sequence[str] = (), size: str = "") -> Real:
        name = f"{module}-{len(made)}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        space: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        cluster.api.create(space)
        cluster.wait("the namespace's account", lambda: cluster.api.get("v1", "ServiceAccount", name, "default"))
        made.append(Real(cluster, name, sets, size))
        return made[-1]

    yield make
    for one in made:
        one.save_logs()
        one.remove()
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one.namespace}}
        cluster.api.delete(space)
        cluster.wait(f"namespace {one.namespace} to be gone", lambda space=space: not exists(cluster.api, space), 120)  # type: ignore[misc]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember the first failure of a module whose tests are steps of one way."""
    report = yield
    if report.failed and item.get_closest_marker("one_way"):  # type: ignore[attr-defined]
        item.parent.stash.setdefault(_FAILED, item.name)  # type: ignore[union-attr]
    return report  # type: ignore[return-value]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A step has no meaning after one that failed."""
    failed = item.parent.stash.get(_FAILED, None) if item.parent else None
    if failed:
        pytest.skip(f"{failed} failed before it")
