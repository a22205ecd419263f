# SPDX-License-Identifier: MIT-0
"""The end of a release: it takes away all but its claim, at once; the next one takes that up; neighbours notice nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from cluster import world
from cluster.changes import no_hooks, refusals
from cluster.release import Release, layout
from harness.api import Object
from harness.cluster import Cluster

GRACE = 30
"""Seconds that Kubernetes gives a process that does not heed SIGTERM."""
ORDINARY = ("v1", "ConfigMap"), ("v1", "ServiceAccount"), ("networking.k8s.io/v1", "NetworkPolicy"), *world.RUN_ONCE


def ended(one: Release) -> float:
    """Uninstall a release and wait until nothing is left of it; answers the seconds."""
    start = time.monotonic()
    one.uninstall()
    one.gone()
    no_hooks(one)
    return time.monotonic() - start


def restored(one: Release) -> None:
    """After a refused change: the last revision is again what runs, so that uninstall knows all that it made."""
    one.upgrade()
    assert one.revisions()[-1][1] == "deployed"


def identity(thing: Object) -> str:
    """What no second object of the same name has."""
    return str(thing["metadata"]["uid"])


def test_uninstall_in_every_stage(
    layout_nodes: Callable[[str, int], list[str]], release: Callable[..., Release]
) -> None:
    """Each install after the first takes up the claim that the one before has left."""
    layout_nodes("ml.g6e.12xlarge", layout("g6e-12xlarge")["nodes"])
    one = release("g6e-12xlarge")
    stages = {
        "none": ([], "", 0),
        "sft": ([], "sft", 4),
        "sft on hyperpod": (["sft.runtime=hyperpod"], "sft", 4),
        "grpo with ray": (["grpo.engine=openrlhf"], "grpo", 6),  # head, four workers, submitter
        "evaluate": ([], "evaluate", 1),
        "serve": (["inference.serve.podDisruptionBudget.enabled=true", "inference.serve.replicas=2"], "serve", 2),
    }
    claims, seconds = set(), {}
    for what, (sets, part, pods) in stages.items():
        one.install(f"global.stage={what.split()[0]}", *sets)
        if part:
            one.running(part, pods)
        seconds[what] = ended(one)
        assert one.gpus() == 0
        claims.add(identity(one.claim()))
    assert len(claims) == 1
    assert one.claim()["status"]["phase"] == "Bound"
    assert {what: round(took) for what, took in seconds.items() if took > GRACE} == {}


def test_uninstall_after_a_refused_change_leaves_nothing(
    layout_nodes: Callable[[str, int], list[str]], release: Callable[..., Release]
) -> None:
    """Helm's last revision is then the stage that never began: it knows nothing of the server with its GPUs."""
    layout_nodes("ml.g6e.12xlarge", layout("g6e-12xlarge")["nodes"])
    one = release("g6e-12xlarge", sets=["storage.shell.enabled=true"])
    one.install("global.stage=serve", "inference.serve.podDisruptionBudget.enabled=true", "inference.serve.replicas=2")
    one.running("serve", 2)
    (line,) = refusals(one.stage("grpo", check=False))
    assert line.startswith("stage grpo cannot start, ")
    one.running("serve", 2)
    assert [status for _, status in one.revisions()] == ["deployed", "failed"]
    claim = identity(one.claim())
    assert ended(one) < GRACE
    assert one.gpus() == 0
    assert identity(one.claim()) == claim


def test_uninstall_during_prepare_and_a_new_release(release: Callable[..., Release]) -> None:
    one = release("local-cpu")
    hole = one.root / "incoming" / "tiny" / "model-2.safetensors"
    _endless(hole)
    one.install()
    one.cluster.wait("prepare to read the model", lambda: _fetching(one))
    claim = identity(one.claim())
    # Its process heeds the signal; one that does not would be there for all of the grace period.
    assert ended(one) < GRACE
    hole.unlink()

    one.prepare()
    assert identity(one.claim()) == claim
    (run,) = (one.root / "runs").glob("prepare-*")
    told = "prepared: tiny in /lingoss/models/"
    first = one.logs("prepare")
    assert first.count(told) == 1
    assert f"fetched: tiny ({run.name})" in first
    done = (run / "DONE.json").stat().st_mtime_ns

    said = one.test()
    assert "/lingoss is writable for 1000:1000" in said
    assert run.name in said
    assert [pod["metadata"]["name"] for pod in one.api.list("v1", "Pod", one.namespace) if _is_test(pod)] == []

    ended(one)
    one.prepare()
    assert identity(one.claim()) == claim
    again = one.logs("prepare")
    assert again.count(told) == 2, "both parts only read back what is there"
    assert "fetched:" not in again
    assert (run / "DONE.json").stat().st_mtime_ns == done
    assert [path.name for path in (one.root / "runs").iterdir()] == [run.name]


def _endless(file: Path) -> None:
    """A file of a TiB that takes no space: reading it takes as long as the network can."""
    with file.open("wb") as stream:
        header = b'{"model.other.weight":{"dtype":"BF16","shape":[549755813888],"data_offsets":[0,1099511627776]}}'
        stream.write(len(header).to_bytes(8, "little") + header)
        stream.truncate(8 + len(header) + (1 << 40))
    os.chown(file, 1000, 1000)


def _fetching(one: Release) -> bool:
    """Whether the first container of prepare runs; it reads the model first of all."""
    states = [
        pod["status"].get("initContainerStatuses") or []
        for pod in world.pods(one.api, one.namespace, one.name, "prepare")
    ]
    return [[list(state["state"]) for state in one] for one in states] == [[["running"]]]


def _is_test(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get("app.kubernetes.io/component") == "test")


def test_two_releases_in_one_namespace(
    layout_nodes: Callable[[str, int], list[str]], release: Callable[..., Release]
) -> None:
    layout_nodes("cpu", 2)
    first, second = release("local-cpu", "first"), release("local-cpu", "second")
    first.install("global.stage=sft")
    (trainer,) = first.running("sft", 1)
    second.prepare()
    second.stage("sft")  # its guard does not mind the other's job
    (other,) = second.running("sft", 1)

    for one, pod in ((first, trainer), (second, other)):
        assert [p["metadata"]["name"] for p in world.pods(one.api, one.namespace, one.name)] == [
            pod["metadata"]["name"]
        ]
        claims = [
            v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v
        ]
        assert claims == [f"{one.name}-lingoss-data"]
        for policy in one.api.list("networking.k8s.io/v1", "NetworkPolicy", one.namespace, labelSelector=_label(one)):
            assert policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/instance"] == one.name
        (line,) = refusals(one.stage("none", check=False))
        assert f"Job {one.workload('sft')['metadata']['name']} is still running" in line
    restored(second)
    assert [identity(pod) for pod in second.running("sft", 1)] == [identity(other)]
    assert not _names(first) & _names(second)
    before = identity(trainer), _names(first)

    ended(second)
    (trainer,) = first.running("sft", 1)
    assert (identity(trainer), _names(first)) == before
    assert {first.claim()["status"]["phase"], second.claim()["status"]["phase"]} == {"Bound"}


def _label(one: Release) -> str:
    return f"app.kubernetes.io/instance={one.name}"


def _names(one: Release) -> set[str]:
    found = [thing for kind in ORDINARY for thing in one.api.list(*kind, one.namespace, labelSelector=_label(one))]
    names = {f"{thing['kind']}/{thing['metadata']['name']}" for thing in found}
    assert names
    return names


@pytest.fixture
def static_volumes(cluster: Cluster) -> Iterator[None]:
    """The kept volumes of the releases of this test are taken away afterwards."""
    before = {thing["metadata"]["name"] for thing in cluster.api.list("v1", "PersistentVolume")}
    yield
    for thing in cluster.api.list("v1", "PersistentVolume"):
        if thing["metadata"]["name"] not in before:
            cluster.api.delete(thing)


def test_one_name_in_two_namespaces(
    namespace: str,
    other_namespace: str,
    static_volumes: None,
    layout_nodes: Callable[[str, int], list[str]],
    release: Callable[..., Release],
) -> None:
    """Volumes belong to no namespace, so they alone could meet."""
    layout_nodes("cpu", 1)
    volume = {"volumeHandle": "fs-0123456789abcdef0", "dnsName": "fs.example", "mountName": "abcdefgh"}
    sets = ["storage.kind=fsx-static", "storage.claim.size=1200Gi", "storage.claim.accessMode=ReadWriteMany"]
    sets += [f"storage.static.{key}={value}" for key, value in volume.items()]
    here = release("local-cpu", space=namespace, volume=False, sets=sets)
    there = release("local-cpu", space=other_namespace, volume=False, sets=sets)
    here.install("global.stage=sft")
    there.install("global.stage=none")
    for one in (here, there):
        one.cluster.wait(f"the claim in {one.namespace} to be bound", partial(_bound, one))
        assert one.claim()["spec"]["volumeName"] == f"{one.namespace}.lingoss-data"
    here.running("sft", 1)
    there.upgrade("test.resources.limits.memory=256Mi")  # its guard does not mind the job in the other namespace
    (line,) = refusals(here.stage("none", check=False))
    assert "stage sft cannot be left for none" in line
    ended(there)
    here.running("sft", 1)
    here.uninstall()  # Helm knows of stage none alone now; the hook stops the job all the same
    here.cluster.wait("the job to be gone", lambda: not world.workloads(here.api, here.namespace, here.name))
    here.cluster.wait("its pod to be gone", lambda: not world.pods(here.api, here.namespace, here.name))
    no_hooks(here)
    assert _bound(here)
    assert _bound(there)


def _bound(one: Release) -> bool:
    return bool(one.claim()["status"].get("phase") == "Bound")
