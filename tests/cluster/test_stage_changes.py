# SPDX-License-Identifier: MIT-0
"""From stage to stage: nothing that runs is lost unasked, nothing starts without its input, no GPU is asked for twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import planted, world
from cluster.changes import FLAG, GATE_FLAG, config_maps, identities, no_hooks, now, pod_history, refusals
from cluster.release import Release
from harness import nodes
from harness.api import Object
from lingoss import runs
from lingoss.config import load

P5, G6E = "p5-48xlarge", "g6e-48xlarge"


@pytest.fixture
def one_node(layout_nodes: Callable[[str, int], list[str]]) -> None:
    """What layout p5-48xlarge has: every stage but serve needs all of it."""
    layout_nodes("ml.p5.48xlarge", 1)


def still(one: Release, stage: str, to: str) -> str:
    """What the guard says when a stage that runs shall be left."""
    thing = one.workload(stage)
    kind, name = thing["kind"], thing["metadata"]["name"]
    return (
        f"stage {stage} cannot be left for {to}, {kind} {name} is still running: wait until it has finished, or "
        f"stop it with `kubectl delete {kind.lower()} {name}`, or pass {FLAG}"
    )


@pytest.mark.parametrize(
    ("stage", "choice", "pods", "helm"),
    [
        pytest.param("sft", "sft.runtime=job", 1, 4, id="job"),
        pytest.param("sft", "sft.runtime=hyperpod", 1, 3, id="hyperpod-helm3"),
        pytest.param("grpo", "grpo.engine=openrlhf", 3, 4, id="ray"),
    ],
)
def test_a_running_stage_is_not_left(
    stage: str, choice: str, pods: int, helm: int, one_node: None, release: Callable[..., Release]
) -> None:
    one = release(P5, helm=helm, sets=[f"global.stage={stage}", choice])
    one.install()
    one.running(stage, pods)
    if choice == "grpo.engine=openrlhf":
        one.cluster.wait("the RayJob to run", lambda: _deployment(one) == "Running")
    before = identities(one, stage)
    refused = one.stage("evaluate", check=False)
    assert refusals(refused) == [still(one, stage, "evaluate")]
    assert identities(one, stage) == before
    assert one.gpus() == 8
    assert one.revisions() == [(1, "deployed"), (2, "failed")]
    no_hooks(one)


def _deployment(one: Release) -> str:
    return str((one.workload("grpo").get("status") or {}).get("jobDeploymentStatus"))


def test_force_ends_a_stage_and_frees_its_gpus_first(
    layout_nodes: Callable[[str, int], list[str]], release: Callable[..., Release]
) -> None:
    machines = layout_nodes("ml.g6e.48xlarge", 2)
    # Pods that save for two seconds before they leave: time in which both stages want the same GPUs.
    slow = f"sft.pod.annotations:={json.dumps({nodes.STOP_AFTER: '2s'})}"
    one = release(G6E, sets=["global.stage=sft", slow])
    one.install()
    old = one.running("sft", 2)
    assert sorted(pod["spec"]["nodeName"] for pod in old) == machines
    start = now(one.cluster)
    one.stage("grpo", "grpo.nodes=2", "guard.force=true")
    new = one.running("grpo", 2)
    assert sorted(pod["spec"]["nodeName"] for pod in new) == machines
    assert one.gpus() == 16
    assert world.workloads(one.api, one.namespace, one.name) == [one.workload("grpo")]
    no_hooks(one)

    history = pod_history(one.cluster, one.namespace, start)
    for came in new:
        node = came["spec"]["nodeName"]
        (went,) = [pod for pod in old if pod["spec"]["nodeName"] == node]
        wanted = _first(history, came, lambda event, pod: event == "ADDED")
        ended = _first(history, went, lambda event, pod: event == "DELETED" or pod["status"]["phase"] == "Failed")
        bound = _first(history, came, lambda event, pod: "nodeName" in pod["spec"])
        assert wanted < ended < bound, f"{node}: asked for at {wanted}, freed at {ended}, taken at {bound}"


def _first(history: list[tuple[str, Object]], pod: Object, what: Callable[[str, Object], bool]) -> int:
    """Place of the first change of a pod that is of this sort."""
    uid = pod["metadata"]["uid"]
    return next(at for at, (event, seen) in enumerate(history) if seen["metadata"]["uid"] == uid and what(event, seen))


def test_a_stage_needs_its_input(one_node: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=none"])
    one.install()
    unfinished = _unfinished(one, one.rendered("prepare", "global.run=broken"))
    (line,) = refusals(one.stage("sft", check=False))
    assert line == (
        "stage sft cannot start, sft needs a finished run of stage prepare below /lingoss/runs: run it first; "
        f"unfinished: {unfinished} is stopped, or pass {FLAG}"
    )
    planted.prepare(one.root)
    run = planted.sft(one.root, one.rendered("sft"))

    gate = planted.evaluation(one.root, one.rendered("evaluate"), run, "sft-first")
    (line,) = refusals(one.stage("grpo", check=False))
    assert line == (
        f"stage grpo is not worth starting, the gate of {gate} says sft-first for {run} (planted as sft-first): train "
        f"longer or on more examples in stage sft, then evaluate again, or pass {GATE_FLAG}"
    )
    assert one.revisions() == [(1, "deployed"), (2, "failed"), (3, "failed")]
    assert world.workloads(one.api, one.namespace, one.name) == []
    no_hooks(one)

    planted.evaluation(one.root, one.rendered("evaluate", "global.run=again"), run, "viable")
    one.stage("grpo")
    one.running("grpo", 1)


def _unfinished(one: Release, config: str) -> str:
    """A prepare run that was begun and stopped; answers its name."""
    path = one.root.parent / "broken.yaml"
    path.write_text(config, encoding="utf-8")
    settings = load("prepare", path, [f"root={one.root}"])
    with runs.open_run(one.root, "prepare", settings, (), "planted") as folder:
        folder.status("running", 1, 2)
    planted.give(one.root)
    return str(folder.name)


def test_a_failed_upgrade_leaves_the_stage_as_it_was(one_node: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=sft"])
    planted.prepare(one.root)
    one.install()
    one.running("sft", 1)
    before = identities(one, "sft")

    wrong = one.upgrade("sft.nodes=5", check=False)
    assert wrong.returncode == 1
    assert "sft.nodes" in wrong.stderr
    assert one.revisions() == [(1, "deployed")]

    start = time.monotonic()
    absent = one.upgrade("guard.deadlineSeconds=10", "global.images.toolbox.tag=absent", check=False)
    assert absent.returncode == 1
    assert time.monotonic() - start < 40
    assert "pre-upgrade hooks failed" in absent.stderr
    assert one.revisions() == [(1, "deployed"), (2, "failed")]

    assert identities(one, "sft") == before
    assert one.gpus() == 8
    no_hooks(one)

    # The next upgrade starts from what is deployed, not from what was refused.
    one.upgrade("inference.serve.replicas=2")
    assert identities(one, "sft") == before
    assert one.revisions() == [(1, "superseded"), (2, "failed"), (3, "deployed")]


def test_serve_may_always_be_left(one_node: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=serve"])
    one.install()
    (server,) = one.running("serve", 1)
    planted.prepare(one.root)
    start = now(one.cluster)
    one.stage("evaluate")
    (sampler,) = one.running("evaluate", 1)
    assert (world.demand(server, world.GPU), world.demand(sampler, world.GPU), one.gpus()) == (1, 8, 8)
    history = pod_history(one.cluster, one.namespace, start)
    ended = _first(history, server, lambda event, pod: event == "DELETED" or pod["status"]["phase"] == "Failed")
    assert ended < _first(history, sampler, lambda event, pod: "nodeName" in pod["spec"])


@pytest.mark.parametrize("helm", [4, 3])
def test_going_back_trains_nothing_again(
    helm: int, layout_nodes: Callable[[str, int], list[str]], release: Callable[..., Release]
) -> None:
    """Stage sft runs for real here: its pod finds the finished run, although it has no torch to train with."""
    layout_nodes("cpu", 1)
    one = release("local-cpu", helm=helm, sets=["global.stage=sft", f"sft.pod:={json.dumps(nodes.ON_REAL_NODE)}"])
    planted.prepare(one.root)
    run = planted.sft(one.root, one.rendered("sft"))
    files = _times(one.root / "runs" / run)
    one.install()
    one.done("sft")
    first = one.workload("sft")["metadata"]

    one.stage("evaluate")
    one.running("evaluate", 1)
    names = _names(one)
    (line,) = refusals(one.rollback(1, check=False))
    assert line == still(one, "evaluate", "sft")
    assert _names(one) == names
    no_hooks(one)
    before = identities(one, "evaluate")
    _close_the_refused_rollback(one)
    assert identities(one, "evaluate") == before
    one.finish("evaluate")
    one.finish("report")
    one.judged(run)
    judged = one.config("evaluate")

    one.rollback(1)
    one.done("sft")
    again = one.workload("sft")["metadata"]
    assert again["name"] == first["name"]
    assert again["uid"] != first["uid"]
    assert f"{run} is done" in one.logs("sft")
    assert _times(one.root / "runs" / run) == files

    one.rollback(2)
    assert _names(one) == names
    assert one.config("evaluate") == judged
    one.running("evaluate", 1)
    one.finish("evaluate")
    one.finish("report")

    one.stage("sft")
    one.done("sft")
    assert one.workload("sft")["metadata"]["name"] == first["name"]
    assert _times(one.root / "runs" / run) == files
    assert {path.name for path in (one.root / "runs").glob("sft-*")} == {run}


def _close_the_refused_rollback(one: Release) -> None:
    """Helm leaves a rollback that a hook refuses pending, and takes no upgrade then."""
    assert one.revisions() == [(1, "superseded"), (2, "deployed"), (3, "pending-rollback")]
    assert "another operation" in one.upgrade(check=False).stderr
    if one.version == 4:
        one.rollback(2)
        assert one.revisions()[-1] == (4, "deployed")
        return
    # Helm 3 cannot roll back to what is there: objects that its last revision does not know are a mistake to it.
    secret = {"name": f"sh.helm.release.v1.{one.name}.v3", "namespace": one.namespace}
    one.api.delete({"apiVersion": "v1", "kind": "Secret", "metadata": secret})
    assert one.revisions() == [(1, "superseded"), (2, "deployed")]


def _names(one: Release) -> set[str]:
    return {thing["metadata"]["name"] for thing in world.workloads(one.api, one.namespace, one.name)}


def _times(folder: Path) -> dict[str, int]:
    """When each file of a run was written last; locks are taken to look, and say nothing of the work."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("lock")
    }


@pytest.mark.parametrize("helm", [4, 3])
def test_more_memory_resumes_the_same_run(helm: int, one_node: None, release: Callable[..., Release]) -> None:
    one = release(P5, helm=helm, sets=["global.stage=sft"])
    planted.prepare(one.root)
    one.install()
    one.running("sft", 1)
    before = (one.workload("sft")["metadata"], one.config("sft"), config_maps(one, "sft"))
    one.upgrade(f"sft.resources:={json.dumps({'limits': {'memory': '1800Gi'}})}")
    (pod,) = one.running("sft", 1)
    after = (one.workload("sft")["metadata"], one.config("sft"), config_maps(one, "sft"))
    assert after[0]["name"] != before[0]["name"]
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == after[0]["name"]
    assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "1800Gi"
    assert after[1:] == before[1:]
    assert len(world.workloads(one.api, one.namespace, one.name)) == 1
    assert one.gpus() == 8
