# SPDX-License-Identifier: MIT-0
"""The whole life of a release on each layout: every stage schedules, with exactly its GPUs, and none is left behind."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from cluster import world
from cluster.queues import gpu_queue
from cluster.release import Release, layout
from harness.api import Object
from harness.cluster import Cluster


@dataclass(frozen=True)
class Shape:
    """Pods and GPUs that each stage of a layout must have; `trl` and `ray` are the engines of GRPO, `ray` less its head."""

    nodes: int
    sft: tuple[int, int]
    trl: tuple[int, int]
    ray: tuple[int, int] | None
    evaluate: int
    serve: int


SHAPES = {
    "local-cpu": Shape(nodes=1, sft=(1, 0), trl=(1, 0), ray=None, evaluate=0, serve=0),
    "g5-12xlarge": Shape(nodes=5, sft=(4, 16), trl=(2, 8), ray=(5, 20), evaluate=4, serve=4),
    "g6e-12xlarge": Shape(nodes=4, sft=(4, 16), trl=(1, 4), ray=(4, 16), evaluate=4, serve=2),
    "g6e-48xlarge": Shape(nodes=2, sft=(2, 16), trl=(1, 8), ray=(2, 16), evaluate=8, serve=2),
    "p4d-24xlarge": Shape(nodes=2, sft=(2, 16), trl=(1, 8), ray=(2, 16), evaluate=8, serve=2),
    "p5-48xlarge": Shape(nodes=1, sft=(1, 8), trl=(1, 8), ray=(1, 8), evaluate=8, serve=1),
    "p5en-48xlarge": Shape(nodes=1, sft=(1, 8), trl=(1, 8), ray=(1, 8), evaluate=8, serve=1),
}
WHOLE = ("local-cpu", "g6e-12xlarge")
"""What CI runs whole; the others whole in `make test-all`."""


def some(names: tuple[str, ...]) -> list[object]:
    """Every layout, those not in `names` for `make test-all` only."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.full) for name in SHAPES]


@pytest.fixture
def hardware(layout_nodes: Callable[[str, int], list[str]], name: str) -> Shape:
    """Simulated nodes of the layout, exactly as many as it says it has."""
    found = layout(name)
    assert found.get("nodes", 1) == SHAPES[name].nodes
    layout_nodes(found.get("instanceType", "cpu"), found["nodes"])
    return SHAPES[name]


@pytest.fixture
def queue(cluster: Cluster, namespace: str, hardware: Shape, name: str) -> Iterator[list[str]]:
    """A Kueue queue with exactly the layout's GPUs; the values that submit to it."""
    with gpu_queue(cluster.api, namespace, hardware.nodes * layout(name)["gpus"]) as submit:
        yield [submit]


@pytest.mark.parametrize("name", some(WHOLE))
def test_life(name: str, release: Callable[..., Release], hardware: Shape) -> None:
    _life(release(name), hardware, layout(name)["engines"])


@pytest.mark.parametrize("name", some(("g6e-12xlarge",)))
def test_life_in_a_queue(name: str, release: Callable[..., Release], hardware: Shape, queue: list[str]) -> None:
    if name == "local-cpu":
        pytest.skip("no GPU to queue for")
    one = release(name, sets=queue)
    _life(one, hardware, layout(name)["engines"])


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in WHOLE])
def test_every_stage_schedules(name: str, release: Callable[..., Release], hardware: Shape) -> None:
    """Without guard and runs: do the pods of each stage find nodes, and no more than the layout has?"""
    one = release(name, sets=["guard.enabled=false", "global.stage=sft"])
    one.install()
    _runs(one, "sft", *hardware.sft)
    for engine in layout(name)["engines"]:
        one.stage("grpo", *_engine(engine))
        _grpo_runs(one, engine, hardware)
    one.stage("evaluate")
    _runs(one, "evaluate", 1, hardware.evaluate)
    one.stage("serve")
    _runs(one, "serve", 1, hardware.serve)


def _life(one: Release, hardware: Shape, engines: list[str]) -> None:
    one.prepare()
    assert one.gpus() == 0
    assert _stored(one) < 200_000

    one.stage("sft")
    _runs(one, "sft", *hardware.sft)
    one.finish("sft")
    assert one.gpus() == 0
    run = one.trained()

    one.stage("evaluate")
    _runs(one, "evaluate", 1, hardware.evaluate)
    one.finish("evaluate")
    one.finish("report")
    one.judged(run)

    for engine in sorted(engines, key="trl".__eq__):  # TRL last: its run is the one that goes on
        one.stage("grpo", *_engine(engine))
        _grpo_runs(one, engine, hardware)
        _end_grpo(one, engine)
    better = one.reinforced()

    one.stage("evaluate")
    _runs(one, "evaluate", 1, hardware.evaluate)
    one.finish("evaluate")
    one.finish("report")
    one.judged(better, accepted="accept")

    one.stage("serve")
    _runs(one, "serve", 1, hardware.serve)

    one.stage("none")
    one.cluster.wait("the server's pod to be gone", lambda: not world.pods(one.api, one.namespace, one.name))
    assert world.workloads(one.api, one.namespace, one.name) == []
    one.uninstall()
    one.gone()
    assert one.claim()["status"]["phase"] == "Bound"


def _stored(one: Release) -> int:
    """Bytes of the largest Secret that Helm keeps of this release; the API server refuses one of 1 MiB."""
    secrets = one.api.list("v1", "Secret", one.namespace, fieldSelector="type=helm.sh/release.v1")
    return max(len(base64.b64decode(secret["data"]["release"])) for secret in secrets)


def _engine(engine: str) -> list[str]:
    """Values that choose an engine; veRL cannot read Harmony, so it gets a model with `<think>`."""
    format, template = ("think", "chatml") if engine == "verl" else ("harmony", "gpt-oss")
    return [f"grpo.engine={engine}", f"grpo.config.format={format}", f"grpo.config.template={template}"]


def _runs(one: Release, part: str, count: int, gpus: int) -> None:
    """So many pods of a part run, and all pods of the release together hold so many GPUs."""
    found = one.running(part, count)
    one.cluster.wait(f"{one.name} to hold {gpus} GPUs", lambda: one.gpus() == gpus)
    if gpus:
        kinds = {_node(one, pod)["node.kubernetes.io/instance-type"] for pod in found}
        assert kinds == {layout(one.layout)["instanceType"]}


def _node(one: Release, pod: Object) -> dict[str, str]:
    labels: dict[str, str] = one.api.get("v1", "Node", None, pod["spec"]["nodeName"])["metadata"]["labels"]
    return labels


def _grpo_runs(one: Release, engine: str, hardware: Shape) -> None:
    if engine == "trl":
        _runs(one, "grpo", *hardware.trl)
        return
    assert hardware.ray is not None
    workers, gpus = hardware.ray

    def scheduled() -> bool:
        found = [
            pod for pod in world.pods(one.api, one.namespace, one.name, "grpo") if pod["status"]["phase"] == "Running"
        ]
        kinds = [pod["metadata"]["labels"].get("ray.io/node-type") for pod in found]
        return kinds.count("worker") == workers and kinds.count("head") == 1 and one.gpus() == gpus

    try:
        one.cluster.wait(f"{engine}: {workers} workers with {gpus} GPUs and a head", scheduled, 120)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; pods: {world.told(one.api, one.namespace)}") from None
    heads = one.api.list("v1", "Pod", one.namespace, labelSelector="ray.io/node-type=head")
    assert {world.demand(head, world.GPU) for head in heads} == {0}  # also those of an engine before, on their way out


def _end_grpo(one: Release, engine: str) -> None:
    """A simulated Ray has no dashboard that could say that the job is done, so the test says it in the operator's place."""
    if engine == "trl":
        one.finish("grpo")
        return
    one.api.merge(
        one.workload("grpo"), {"status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}}, "status"
    )
    one.done("grpo")
