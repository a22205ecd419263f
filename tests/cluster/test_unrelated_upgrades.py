# SPDX-License-Identifier: MIT-0
"""An upgrade restarts a stage if, and only if, it changes what the stage's own pods are."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import planted, world
from cluster.changes import identities
from cluster.queues import gpu_queue
from cluster.release import CHART, Release
from harness.api import Object

P5 = "p5-48xlarge"
DIGEST = "sha256:" + "a" * 64
MEMORY = json.dumps({"limits": {"memory": "64Gi"}})
# What belongs to each part alone: its memory, its pods' labels, its settings.
OWN = {
    "prepare": [
        "storage.prepare.retries=7",
        "storage.prepare.pod.labels.team=a",
        "storage.prepare.config.lock_wait=99",
    ],
    "sft": [f"sft.resources:={MEMORY}", "sft.pod.labels.team=a", "sft.config.lora.rank=4"],
    "grpo": [f"grpo.resources:={MEMORY}", "grpo.pod.labels.team=a", "grpo.config.max_steps=7"],
    "evaluate": [
        f"inference.evaluate.generate.resources:={MEMORY}",
        "inference.evaluate.generate.pod.labels.team=a",
        "inference.evaluate.config.generate.k=2",
    ],
    "serve": [
        f"inference.serve.resources:={MEMORY}",
        "inference.serve.pod.labels.team=a",
        "inference.serve.config.max_model_len=999",
    ],
}
# What is nobody's pod: policies, the guard, the shell, the image of the engine that does not run.
NOBODY = [
    "global.networkPolicy.enabled=false",
    "global.networkPolicy.hyperpodOperatorNamespace=elsewhere",
    "guard.deadlineSeconds=300",
    f"guard.resources:={MEMORY}",
    "storage.shell.pod.labels.team=a",
    f"global.images.openrlhf.digest={DIGEST}",
    "kuberay.ttlSeconds=77",
]


@pytest.fixture
def machine(layout_nodes: Callable[[str, int], list[str]]) -> None:
    """What layout p5-48xlarge has."""
    layout_nodes("ml.p5.48xlarge", 1)


@pytest.fixture
def other_version(tmp_path: Path) -> Path:
    """The same chart as another release of it: every version is another one."""
    chart = tmp_path / "lingoss"
    shutil.copytree(CHART, chart)
    for file in chart.rglob("Chart.yaml"):
        text = file.read_text(encoding="utf-8")
        changed = re.sub(r"^(\s*(?:- )?(?:version|appVersion)): .*$", r'\1: "97.0.0"', text, flags=re.M)
        assert changed != text
        file.write_text(changed, encoding="utf-8")
    return chart


def stage_of(one: Release, stage: str) -> dict[str, str]:
    """Names and UIDs of what a stage runs: its object and its pods."""
    if stage != "serve":
        return identities(one, stage)
    (thing,) = one.api.list("apps/v1", "Deployment", one.namespace)
    pods = world.pods(one.api, one.namespace, one.name, stage)
    return {f"{it['kind']}/{it['metadata']['name']}": it["metadata"]["uid"] for it in (thing, *pods)}


@pytest.mark.parametrize(
    ("stage", "choice", "digest"),
    [
        pytest.param("sft", ["sft.runtime=job"], "toolbox", id="sft"),
        pytest.param("sft", ["sft.runtime=hyperpod"], "toolbox", id="sft-hyperpod"),
        pytest.param("grpo", [], "toolbox", id="grpo"),
        pytest.param("serve", [], "toolbox", id="serve"),
    ],
)
def test_what_belongs_to_others_restarts_nothing(
    stage: str, choice: list[str], digest: str, machine: None, release: Callable[..., Release], other_version: Path
) -> None:
    """Everything at once: if one of the values reached the pods, they would be others."""
    one = release(P5, sets=[f"global.stage={stage}", "guard.enabled=false", *choice])
    one.install()
    one.running(stage, 1)
    before = stage_of(one, stage)
    assert len(before) == 2
    others = [setting for part, settings in OWN.items() if part != stage for setting in settings]
    one.upgrade(*others, *NOBODY, f"global.images.{digest}.digest={DIGEST}")
    assert stage_of(one, stage) == before
    assert not one.api.list("networking.k8s.io/v1", "NetworkPolicy", one.namespace)

    one.chart = other_version
    one.upgrade()
    assert "97.0.0" in one.cluster.helm("list", "--namespace", one.namespace).stdout
    assert stage_of(one, stage) == before


def test_a_ray_job_outlives_what_belongs_to_others(
    machine: None, release: Callable[..., Release], other_version: Path
) -> None:
    # Without a tag of its own an image is the chart's appVersion, and another one is another pod.
    image = "global.images.openrlhf.tag=test"
    one = release(P5, sets=["global.stage=grpo", "grpo.engine=openrlhf", image, "guard.enabled=false"])
    one.install()
    one.cluster.wait("Ray's head and worker to run", lambda: len(_ray_pods(one)) == 2)
    before = one.workload("grpo")["metadata"]["uid"], _ray_pods(one)
    others = [setting for part, settings in OWN.items() if part != "grpo" for setting in settings]
    images = [f"global.images.{name}.digest={DIGEST}" for name in ("toolbox", "trainer")]
    one.upgrade(*others, *images, "global.networkPolicy.enabled=false", "sft.nodes=1")
    one.chart = other_version
    one.upgrade()
    assert (one.workload("grpo")["metadata"]["uid"], _ray_pods(one)) == before


@pytest.mark.parametrize(
    ("stage", "choice", "flags"),
    [
        pytest.param("sft", "sft.runtime=job", [], id="job"),
        pytest.param("sft", "sft.runtime=hyperpod", [], id="hyperpod"),
        # Kueue writes into a list of the RayJob that the server takes as one value, so Helm 4 must not apply it there.
        pytest.param("grpo", "grpo.engine=openrlhf", ["--server-side=false"], id="ray"),
    ],
)
def test_a_queued_workload_outlives_what_belongs_to_others(
    stage: str, choice: str, flags: list[str], machine: None, release: Callable[..., Release]
) -> None:
    one = release(P5, sets=[f"global.stage={stage}", choice, "guard.enabled=false", "global.queue.name=gpu-queue"])
    with gpu_queue(one.api, one.namespace, 8):
        one.install()
        one.cluster.wait("the queue to admit it", lambda: one.gpus() == 8)
        before = one.workload(stage)["metadata"]["uid"]
        if flags:
            refused = one.upgrade(*OWN["serve"], check=False)
            assert 'conflict with "kueue"' in refused.stderr
        one.upgrade(*OWN["serve"], flags=flags)
        assert one.workload(stage)["metadata"]["uid"] == before
        assert one.gpus() == 8


def _ray_pods(one: Release) -> dict[str, str]:
    """Node type and UID of the running pods of the Ray cluster."""
    return {
        pod["metadata"]["labels"]["ray.io/node-type"]: pod["metadata"]["uid"]
        for pod in world.pods(one.api, one.namespace, one.name, "grpo")
        if "ray.io/node-type" in pod["metadata"]["labels"] and pod["status"]["phase"] == "Running"
    }


def test_the_guard_lets_an_unrelated_upgrade_pass(machine: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=sft"])
    planted.prepare(one.root)
    one.install()
    one.running("sft", 1)
    before = identities(one, "sft")
    one.upgrade(*OWN["grpo"], *OWN["serve"])
    assert identities(one, "sft") == before
    assert one.revisions() == [(1, "superseded"), (2, "deployed")]


RESTARTS: dict[str, Callable[[Object], object]] = {
    f"sft.resources:={MEMORY}": lambda pod: pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "64Gi",
    f"global.images.trainer.digest={DIGEST}": lambda pod: pod["spec"]["containers"][0]["image"].endswith(DIGEST),
    "sft.config.lora.rank=4": lambda pod: pod["metadata"]["name"],
    "sft.pod.labels.team=a": lambda pod: pod["metadata"]["labels"]["team"] == "a",
    "global.pod.annotations.team=b": lambda pod: pod["metadata"]["annotations"]["team"] == "b",
    "global.network.nccl.debug=INFO": lambda pod: (
        {"name": "NCCL_DEBUG", "value": "INFO"} in pod["spec"]["containers"][0]["env"]
    ),
    "global.user.uid=1234": lambda pod: pod["spec"]["securityContext"]["runAsUser"] == 1234,
    "global.run=again": lambda pod: pod["metadata"]["name"],
    "sft.runtime=hyperpod": lambda pod: pod["metadata"]["ownerReferences"][0]["kind"] == "HyperPodPyTorchJob",
}
"""Each changes what the running stage's pods are; its pod must show it."""


def test_what_belongs_to_the_stage_restarts_it(machine: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=sft", "guard.enabled=false"])
    one.install()
    one.running("sft", 1)
    for setting, shows in RESTARTS.items():
        before = stage_of(one, "sft")
        one.upgrade(setting)
        (pod,) = one.running("sft", 1)
        after = stage_of(one, "sft")
        assert not set(after.values()) & set(before.values()), f"{setting} leaves the old pods"
        assert not set(after) & set(before), f"{setting} keeps the name"
        assert shows(pod), f"{setting} does not reach the pod"


def test_a_server_restarts_for_what_is_its_own(machine: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=serve", "guard.enabled=false"])
    one.install()
    (old,) = one.running("serve", 1)
    for setting in (*OWN["serve"], f"global.images.trainer.digest={DIGEST}"):
        one.upgrade(setting)
        uid = old["metadata"]["uid"]
        one.cluster.wait(f"another server after {setting}", lambda uid=uid: uid not in stage_of(one, "serve").values())  # type: ignore[misc]
        (old,) = one.running("serve", 1)
    assert old["spec"]["containers"][0]["image"].endswith(DIGEST)
