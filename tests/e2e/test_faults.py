# SPDX-License-Identifier: MIT-0
"""What goes wrong on a real node: each fault hits a running stage, and leaves no damaged run folder and no pod behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from e2e import server
from e2e.release import Real
from harness.api import Object
from harness.cluster import LocalCluster
from lingoss import runs

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

STEPS, SAVE = 16, 4
LONG = (f"sft.config.max_steps={STEPS}", f"sft.config.checkpoint.save_steps={SAVE}")
ONE_POD = (*LONG, "sft.nodes=1")


@pytest.fixture(scope="module")
def prepared(make_release: Callable[..., Real]) -> Real:
    """A release whose stage prepare is over; others begin with a copy of its volume."""
    release = make_release()
    release.install()
    release.ends("prepare", 240)
    release.uninstall()
    return release


@pytest.fixture
def begin(make_release: Callable[..., Real], prepared: Real) -> Iterator[Callable[..., Real]]:
    """Installs a release at a stage that needs a prepared model; at the end nothing of it may be left."""
    begun: list[Real] = []

    def install(stage: str, *sets: str, size: str = "") -> Real:
        release = make_release(sets=[*sets, f"global.stage={stage}"], size=size)
        subprocess.run(["cp", "--archive", f"{prepared.root}/.", str(release.root)], check=True)
        begun.append(release)
        release.install()
        return release

    yield install
    for release in begun:
        release.save_logs()
        release.uninstall()
        release.gone()


def test_a_pod_that_is_killed_loses_less_than_a_save(begin: Callable[..., Real]) -> None:
    release = begin("sft", *ONE_POD)
    (pod,) = release.running("sft", 1)
    release.reaches("sft", SAVE + 2)
    name = pod["metadata"]["name"]
    release.cluster.kubectl("delete", "pod", name, "--namespace", release.namespace, "--force", "--grace-period=0")
    next_to(release, pod)
    last = release.steps("sft")[-1]["step"]
    goes_on(release, last)


def test_a_killed_shim_of_one_rank(begin: Callable[..., Real]) -> None:
    release = begin("sft", *LONG)
    pods = release.running("sft", 2)
    release.reaches("sft", SAVE + 2)
    shim = parent_of(release.local, pods[1])
    release.local.sandbox.run(["kill", "-9", shim])
    job = release.ends("sft", 500)
    assert job["status"]["succeeded"] == 2
    whole(release)


def test_a_full_volume_while_a_checkpoint_is_saved(begin: Callable[..., Real]) -> None:
    release = begin("sft", *ONE_POD, size="850m")
    release.reaches("sft", SAVE)
    run = release.run("sft")
    release.cluster.wait(f"checkpoint {SAVE}", lambda: saved(run))
    filler = release.root.parent / "filler"
    space = os.statvfs(filler.parent)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - 1_000_000)  # rows of metrics still fit
    with pytest.raises(AssertionError, match=r"could not be written to .*(?i:no space)") as failed:
        release.ends("sft", 200)
    assert f"the checkpoint of step {SAVE} is whole" in str(failed.value)
    run = release.run("sft")
    assert run.state == "failed"
    assert "could not be written" in (run.reason or "")
    filler.unlink()
    again(release)
    goes_on(release, 2 * SAVE)


def test_a_rotated_key_is_asked_for_after_a_restart(begin: Callable[..., Real]) -> None:
    # The base model: the key is the server's affair, and training takes minutes.
    release = begin(
        "serve", "inference.serve.config.parent=latest:prepare", "inference.serve.apiKey.secretName=server-key"
    )
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "server-key", "namespace": release.namespace},
        "stringData": {"api-key": "first"},
    }
    release.api.create(secret)
    old = release.serves(420)
    with release.forwarded() as address:
        answers = {key: server.status(address, "/v1/models", key) for key in ("", "second", "first")}
    assert answers == {"": 401, "second": 401, "first": 200}
    release.api.merge(secret, {"stringData": {"api-key": "second"}})
    release.cluster.kubectl("rollout", "restart", "deployment/lingoss-serve", "--namespace", release.namespace)
    next_to(release, old, "serve")
    release.serves(420)
    with release.forwarded() as address:
        answers = {key: server.status(address, "/v1/models", key) for key in ("first", "second")}
    assert answers == {"first": 401, "second": 200}


def test_a_drained_node_saves_first_and_counts_as_no_failure(begin: Callable[..., Real]) -> None:
    release = begin("sft", *ONE_POD)
    (pod,) = release.running("sft", 1)
    release.reaches("sft", SAVE + 2)
    node = pod["spec"]["nodeName"]
    drain = ["drain", node, "--force", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=120s"]
    release.cluster.kubectl(*drain, seconds=150)
    try:
        run = release.run("sft")
        assert run.state == "stopped"
        assert run.step == release.steps("sft")[-1]["step"]
        assert run.step in {int(path.name.rpartition("-")[2]) for path in (run.path / "checkpoints").glob("[!.]*")}
        waiting = release.cluster.wait("the next pod, which finds no node", lambda: unplaced(release))
        assert "unschedulable" in waiting
    finally:
        release.cluster.kubectl("uncordon", node)
    assert run.step is not None
    job = goes_on(release, run.step, lost=0)
    assert not job["status"].get("failed")


def test_an_image_that_does_not_exist(begin: Callable[..., Real]) -> None:
    release = begin("sft", *ONE_POD, "global.images.trainer.tag=nowhere")
    reason = release.cluster.wait("the image to be missed", lambda: pull_error(release), 120)
    assert "localhost/lingoss-toolbox-train:nowhere" in reason
    assert release.runs("sft") == []
    release.upgrade("global.images.trainer.tag=test")
    release.ends("sft", 300)
    whole(release)


def test_a_trainer_that_is_out_of_memory(begin: Callable[..., Real]) -> None:
    limit = "sft.resources.limits.memory"
    release = begin("sft", *ONE_POD, f"{limit}=900Mi", "sft.retries=0")
    with pytest.raises(AssertionError, match="sft: "):
        release.ends("sft", 200)
    (pod,) = release.all_pods("sft")
    ended = [s["state"]["terminated"] for s in pod["status"]["containerStatuses"] if "terminated" in s["state"]]
    assert [(one["reason"], one["exitCode"]) for one in ended] == [("OOMKilled", 137)]
    lost = release.cluster.wait("the run to count as lost", lambda: release.lost("sft"), 120)
    assert "out of memory?" in lost
    notes = release.upgrade(f"{limit}=6Gi", "sft.retries=3").stdout
    assert "OOMKilled" in notes
    release.ends("sft", 300)
    whole(release)


def test_containerd_restarts_under_a_running_stage(begin: Callable[..., Real]) -> None:
    release = begin("sft", *ONE_POD)
    (pod,) = release.running("sft", 1)
    reached = release.reaches("sft", SAVE)
    start = release.local.sandbox.stop_program("containerd")
    release.reaches("sft", reached + 1)  # the pod does not need it
    start()
    job = release.ends("sft", 300)
    assert not job["status"].get("failed")
    (after,) = release.all_pods("sft")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert [status["restartCount"] for status in after["status"]["containerStatuses"]] == [0]
    whole(release)


def goes_on(release: Real, last: int, lost: int = SAVE - 1) -> Object:
    """The job's next pod ends the run, from a checkpoint at most `lost` steps before `last`; answers the job."""
    job = release.ends("sft", 300)
    log = release.log(release.all_pods("sft")[-1])
    done = [json.loads(line)["done"] for line in log.splitlines() if line.startswith('{"task": "sft", "done"')]
    resumed = done[0] - 1
    assert last - lost <= resumed <= last, (resumed, last)
    assert resumed > 0
    whole(release)
    return job


def whole(release: Real) -> None:
    """The one SFT run is done, with every step once, and all files are as they were written."""
    run = release.run("sft")
    assert run.done
    assert run.step == STEPS
    assert [row["step"] for row in release.steps("sft")] == list(range(1, STEPS + 1))
    assert runs.verify(run.path) == []


def again(release: Real) -> None:
    """What the notes say after a failed job: delete it, and the same upgrade again."""
    job = release.workload("sft")["metadata"]["name"]
    release.cluster.kubectl("delete", "job", job, "--namespace", release.namespace)
    release.upgrade()


def next_to(release: Real, pod: Object, part: str = "sft") -> None:
    """Wait until a pod is gone and another of its part is there."""

    def check() -> bool:
        found = {one["metadata"]["uid"] for one in release.all_pods(part)}
        return bool(found) and pod["metadata"]["uid"] not in found

    release.cluster.wait(f"another pod in the place of {pod['metadata']['name']}", check, 120)


def saved(run: runs.RunInfo) -> bool:
    """Whether a whole checkpoint is there."""
    return any(path.is_dir() and not path.name.startswith(".") for path in (run.path / "checkpoints").glob("*"))


def parent_of(cluster: LocalCluster, pod: Object) -> str:
    """Process id, inside the cluster, of the shim that holds a pod's main container."""
    (status,) = pod["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    tasks = cluster.sandbox.run(["ctr", "--namespace", "k8s.io", "tasks", "list"]).splitlines()
    (task,) = (line.split() for line in tasks if line.startswith(container))
    said = cluster.sandbox.run(["cat", f"/proc/{task[1]}/status"])
    return next(line.split()[1] for line in said.splitlines() if line.startswith("PPid:"))


def unplaced(release: Real) -> str:
    """Why the newest pod of the training finds no node; empty when it is not so."""
    pods = [pod for pod in release.all_pods("sft") if not pod["spec"].get("nodeName")]
    conditions = [one for pod in pods for one in pod["status"].get("conditions") or []]
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def pull_error(release: Real) -> str:
    """Why an image of the training pod cannot be had; empty when it is not so."""
    for pod in release.all_pods("sft"):
        for status in pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", []):
            waiting = status["state"].get("waiting", {})
            if waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff"):
                return str(waiting.get("message", ""))
    return ""
