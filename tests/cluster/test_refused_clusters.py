# SPDX-License-Identifier: MIT-0
"""Clusters that refuse something: each time the user is told what, in words that lead on, and nothing waits for ever."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from cluster import world
from cluster.changes import FLAG, no_hooks, refusals
from cluster.queues import gpu_queue
from cluster.release import Release
from harness import nodes, operators
from harness.api import ApiError, Object
from harness.cluster import Cluster, LocalCluster, OnlyLocalError, existing
from harness.hyperpod.definition import definition

G6E, P5 = "g6e-12xlarge", "p5-48xlarge"
ENGINES = ("trl", "openrlhf", "verl")
THINK = ["grpo.config.format=think", "grpo.config.template=chatml"]
SWITCHES = ["storage.shell.enabled=true", "sft.runtime=job"]


def told(one: Release, *command: str) -> str:
    """What a kubectl command of the notes prints."""
    return one.cluster.kubectl("--namespace", one.namespace, *command)


def said_by(one: Release, command: tuple[str, ...], text: str) -> None:
    """Wait until a kubectl command prints a text."""
    shown: list[str] = []

    def check() -> bool:
        shown[:] = [told(one, *command)]
        return text in shown[0]

    try:
        one.cluster.wait(f"kubectl {' '.join(command)} to say {text!r}", check)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; it says: {shown[0][-3000:]}") from None


# -- pod security ------------------------------------------------------------------------------------------------------


def _pods(thing: Object, at: str = "") -> Iterator[tuple[str, Object]]:
    """Every pod and pod template in an object, with its place."""
    if thing.get("kind") == "Pod":
        yield "Pod", {"metadata": thing["metadata"], "spec": thing["spec"]}
        return
    for key, value in thing.items():
        if isinstance(value, dict):
            if isinstance(value.get("spec"), dict) and "containers" in value["spec"]:
                yield f"{at}.{key}", value
            else:
                yield from _pods(value, f"{at}.{key}")
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from _pods(item, f"{at}.{key}")


def _admitted(one: Release, pod: Object) -> str:
    """Empty, or why this namespace would not take the pod: the server is asked, but makes nothing."""
    # Accounts come with the release; without them the server would not even look at the pod.
    spec = {**pod["spec"], "serviceAccountName": "default"}
    thing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked", "namespace": one.namespace}, "spec": spec}
    spec.setdefault("restartPolicy", "Never")
    try:
        one.api.raw("POST", one.api.path("v1", "Pod", one.namespace), thing, dryRun="All", fieldValidation="Strict")
    except ApiError as error:
        return str(error)
    return ""


def test_a_restricted_namespace_takes_the_pods_of_every_stage(release: Callable[..., Release]) -> None:
    """All scenarios run in such a namespace; this asks for the pods that operators would make, too."""
    one = release(G6E, volume=False, sets=SWITCHES)
    asked: set[str] = set()
    for stage in ("none", "prepare", "sft", "grpo", "evaluate", "serve"):
        for engine in ENGINES if stage == "grpo" else ENGINES[:1]:
            extra = [f"grpo.engine={engine}", *(THINK if engine == "verl" else [])] if stage == "grpo" else []
            for thing in one.objects(stage, *extra, "grpo.config.rollout.mode=server"):
                for place, pod in _pods(thing):
                    part = thing["metadata"]["labels"]["app.kubernetes.io/component"]
                    assert _admitted(one, pod) == "", (
                        f"{stage} {engine}: {thing['kind']}/{thing['metadata']['name']}{place}"
                    )
                    asked.add(f"{thing['kind']}/{part}")
    hyperpod = one.objects("sft", "sft.runtime=hyperpod")
    assert [
        _admitted(one, pod) for thing in hyperpod if thing["kind"].startswith("HyperPod") for _, pod in _pods(thing)
    ] == [""]
    jobs = {f"Job/{part}" for part in ("cleanup", "evaluate", "grpo", "guard", "prepare", "report", "sft")}
    assert asked == jobs | {"Deployment/serve", "Deployment/shell", "Pod/test", "RayJob/grpo"}


def test_a_restricted_namespace_refuses_the_owner_job(release: Callable[..., Release]) -> None:
    one = release("local-cpu", sets=["storage.owner.create=true"])
    notes = one.install().stdout
    name = one.workload("owner")["metadata"]["name"]
    assert f"describe job/{name}" in notes
    assert "no pod at all: quota, queue or pod security" in notes
    said_by(one, ("describe", f"job/{name}"), 'violates PodSecurity "restricted:latest": ')
    assert '(container "owner" must not include "CHOWN", "DAC_OVERRIDE", "FOWNER"' in told(
        one, "describe", f"job/{name}"
    )
    assert world.pods(one.api, one.namespace, one.name, "owner") == []


# -- quotas ------------------------------------------------------------------------------------------------------------


def _quota(one: Release, resource: str, most: str) -> None:
    spec = {"hard": {resource: most}}
    thing = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": one.namespace}}
    one.api.create({**thing, "spec": spec})

    def counted() -> bool:
        status = one.api.get("v1", "ResourceQuota", one.namespace, "small").get("status") or {}
        return bool(status.get("hard") == spec["hard"])

    one.cluster.wait("the quota to be counted", counted)


def test_a_gpu_quota_that_is_too_small(
    layout_nodes: Callable[[str, int], list[str]], release: Callable[..., Release]
) -> None:
    layout_nodes("ml.p5.48xlarge", 1)
    one = release(P5)
    _quota(one, "requests.nvidia.com/gpu", "4")
    notes = one.install("global.stage=sft").stdout
    name = one.workload("sft")["metadata"]["name"]
    assert f"describe job/{name}     # no pod at all: quota, queue or pod security" in notes
    resource = "requests.nvidia.com/gpu"
    text = f"exceeded quota: small, requested: {resource}=8, used: {resource}=0, limited: {resource}=4"
    said_by(one, ("describe", f"job/{name}"), text)
    (line,) = refusals(one.stage("none", check=False))
    assert line.startswith(f"stage sft cannot be left for none, Job {name} is still queued or starting: ")
    assert f"kubectl delete job {name}" in line
    one.stage("none", "guard.force=true")
    assert world.workloads(one.api, one.namespace, one.name) == []


def test_a_quota_that_leaves_no_room_for_the_guard(release: Callable[..., Release]) -> None:
    one = release("local-cpu", sets=["global.stage=none", "guard.deadlineSeconds=10"])
    one.install()
    _quota(one, "requests.memory", "100Mi")
    status, seconds = _timed(lambda: one.upgrade("inference.serve.replicas=1", check=False))
    assert status == 1
    assert seconds < 60
    events = told(one, "get", "events", "--sort-by", ".lastTimestamp")
    assert (
        "exceeded quota: small, requested: requests.memory=512Mi, used: requests.memory=0, limited: requests.memory=100Mi"
        in events
    )
    no_hooks(one)


def _timed(command: Callable[[], subprocess.CompletedProcess[str]]) -> tuple[int, float]:
    """Exit status of a Helm command that may fail, and its seconds."""
    start = time.monotonic()
    return command().returncode, time.monotonic() - start


def test_a_full_queue(
    namespace: str,
    layout_nodes: Callable[[str, int], list[str]],
    release: Callable[..., Release],
    cluster: Cluster,
) -> None:
    layout_nodes("ml.p5.48xlarge", 2)
    with gpu_queue(cluster.api, namespace, 8) as submit:
        first, second = (release(P5, name, sets=[submit, "global.stage=sft"]) for name in ("first", "second"))
        first.install()
        first.running("sft", 1)
        notes = second.install().stdout
        job = second.workload("sft")
        assert f"describe job/{job['metadata']['name']}     # no pod at all: quota, queue or pod security" in notes
        said_by(
            second,
            ("describe", "workloads"),
            f"insufficient unused quota for nvidia.com/gpu in flavor {namespace}, 8 more needed",
        )
        assert second.workload("sft")["spec"]["suspend"] is True
        assert "Suspended" in told(second, "describe", f"job/{job['metadata']['name']}")
        assert world.pods(cluster.api, namespace, "second") == []
        (line,) = refusals(second.stage("none", check=False))
        assert line.startswith(
            f"stage sft cannot be left for none, Job {job['metadata']['name']} is still queued: wait"
        )
        first.finish("sft")
        second.running("sft", 1)
        first.uninstall()
        first.gone()
        second.uninstall()  # Helm's last revision of it is the refused one; the hook stops the job
        cluster.wait("the second job to be gone", lambda: not world.workloads(cluster.api, namespace, "second"))


# -- what is not there -------------------------------------------------------------------------------------------------


def test_without_a_token_prepare_goes_on(release: Callable[..., Release]) -> None:
    one = release("local-cpu")
    one.prepare()
    (secret,) = {
        env["valueFrom"]["secretKeyRef"]["name"]
        for container in one.workload("prepare")["spec"]["template"]["spec"]["initContainers"]
        for env in container["env"]
        if "valueFrom" in env
    }
    with pytest.raises(ApiError, match=f'secrets "{secret}" not found'):
        one.api.get("v1", "Secret", one.namespace, secret)


def test_without_its_key_the_server_says_which_secret_is_missing(release: Callable[..., Release]) -> None:
    real = json.dumps(nodes.ON_REAL_NODE)
    small = json.dumps({"limits": {"memory": "512Mi"}, "requests": {"cpu": "100m"}})
    sets = [
        "inference.serve.apiKey.secretName=vllm-key",
        f"inference.serve.pod:={real}",
        f"inference.serve.resources:={small}",
    ]
    one = release("local-cpu", sets=["global.stage=serve", *sets])
    notes = one.install().stdout
    pods = ("describe", "pods", "--selector", f"app.kubernetes.io/instance={one.name}")
    assert f"{' '.join(pods)}     # Pending, killed: why" in notes
    said_by(one, pods, 'Error: secret "vllm-key" not found')


@pytest.fixture(scope="module")
def bare_cluster() -> Iterator[LocalCluster]:
    """A real API server with no operator and no definition of theirs."""
    if existing():
        raise OnlyLocalError("a cluster of yours has the operators' definitions already")
    cluster = LocalCluster.boot()
    yield cluster
    cluster.stop()


def test_a_missing_definition_is_refused_by_name(bare_cluster: LocalCluster) -> None:
    remedies = {
        ("global.stage=grpo", "grpo.engine=openrlhf"): (
            "grpo.engine=openrlhf needs the custom resource RayJob (ray.io/v1), which this cluster does not have: "
            "run `make operators`, or --set grpo.engine=trl"
        ),
        ("global.stage=sft", "sft.runtime=hyperpod"): (
            "sft.runtime=hyperpod needs the custom resource HyperPodPyTorchJob (sagemaker.amazonaws.com/v1), which this "
            "cluster does not have: install the EKS add-on amazon-sagemaker-hyperpod-training-operator, or --set sft.runtime=job"
        ),
        ("global.stage=sft", "global.queue.name=gpu-queue"): (
            "global.queue names a queue, but this cluster does not have Kueue (kueue.x-k8s.io): run `make operators`, or "
            "take global.queue out of the values"
        ),
    }
    one = Release(bare_cluster, "default", "lingoss", G6E, volume=False)
    for version in (4, 3):
        one.version = version
        for sets, remedy in remedies.items():
            refused = one.install(*sets, check=False)
            assert refused.returncode == 1
            assert remedy in refused.stderr
    operators.define(bare_cluster.api, [definition("HyperPodPytorchJob")])
    refused = one.install("global.stage=sft", "sft.runtime=hyperpod", check=False)
    assert "spells the custom resource HyperPodPytorchJob" in refused.stderr
    assert "--set sft.hyperpod.kind=HyperPodPytorchJob" in refused.stderr
    assert bare_cluster.helm("list", "--short", "--namespace", "default").stdout.split() == []
    one.install("global.stage=sft", "sft.runtime=hyperpod", "sft.hyperpod.kind=HyperPodPytorchJob")
    made = bare_cluster.api.list("sagemaker.amazonaws.com/v1", "HyperPodPytorchJob", "default")
    assert [thing["metadata"]["labels"]["app.kubernetes.io/component"] for thing in made] == ["sft"]


def test_a_claim_that_stays_pending(cluster: Cluster, namespace: str, release: Callable[..., Release]) -> None:
    one = release("local-cpu", volume=False, sets=["global.stage=none"])
    notes = one.install().stdout
    assert "claim lingoss-data" in notes
    assert one.claim()["status"]["phase"] == "Pending"
    start = time.monotonic()
    (line,) = refusals(one.stage("sft", check=False))
    assert time.monotonic() - start < 100, "as soon as the pod has looked, not at the deadline of 120 s"
    assert line == (
        f"stage sft cannot start, claim lingoss-data is Pending, so no pod can mount it: `kubectl --namespace {namespace} "
        "describe pvc lingoss-data` says why; a class that waits for its first pod is bound by stage prepare, or pass "
        f"{FLAG}"
    )
    no_hooks(one)
    notes = one.stage("prepare").stdout  # may be what the claim waits for
    assert f"kubectl --namespace {namespace} describe pvc lingoss-data     # must become Bound" in notes
    said_by(one, ("describe", "pods"), "pod has unbound immediate PersistentVolumeClaims")
    assert "no persistent volumes available for this claim and no storage class is set" in told(
        one, "describe", "pvc", "lingoss-data"
    )
    one.provide()
    one.done("prepare")
    one.stage("sft")


def test_an_image_that_the_guard_cannot_have(release: Callable[..., Release]) -> None:
    one = release("local-cpu", sets=["global.stage=none", "guard.deadlineSeconds=10"])
    one.install()
    status, seconds = _timed(lambda: one.upgrade("global.images.toolbox.tag=absent", check=False))
    assert status == 1
    assert seconds < 60
    events = told(one, "get", "events", "--sort-by", ".lastTimestamp")
    assert 'Failed to pull image "localhost/lingoss-toolbox:absent"' in events
    assert "job/lingoss-guard" in events
    assert "Job was active longer than specified deadline" in events
    no_hooks(one)
    assert one.revisions() == [(1, "deployed"), (2, "failed")]
