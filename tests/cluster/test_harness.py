# SPDX-License-Identifier: MIT-0
"""The test cluster itself: simulated nodes bind and run what they should, and the operators do their part of the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import images, nodes
from harness.api import Api, ApiError, Object
from harness.cluster import Cluster
from harness.instances import INSTANCES
from render.crds import make

HYPERPOD = "sagemaker.amazonaws.com/v1"
KUEUE = "kueue.x-k8s.io/v1beta2"
G6E = "ml.g6e.12xlarge"
RAY = Path(nodes.__file__).parent / "ray"


@pytest.fixture(scope="module", autouse=True)
def one_node_of_each_type(cluster: Cluster) -> Iterator[None]:
    names = [name for kind in INSTANCES for name in nodes.add(cluster.api, kind, 1)]
    yield
    nodes.remove(cluster.api, names)


@pytest.fixture
def api(cluster: Cluster) -> Api:
    return cluster.api


@pytest.fixture
def space(api: Api, request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own, enforcing the restricted profile."""
    name = request.node.name.split("[")[0].removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    thing = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    api.create(thing)
    cluster.wait("the namespace's account", lambda: api.get("v1", "ServiceAccount", name, "default"))
    yield name
    api.delete(thing)  # the controller takes 10 s for it; the next test waits for devices only as long as it must


def pod_spec(gpus: int, efa: int, instance_type: str = G6E, **more: object) -> Object:
    figures = {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": str(gpus), "vpc.amazonaws.com/efa": str(efa)}
    return {
        "restartPolicy": "Never",
        "nodeSelector": {"node.kubernetes.io/instance-type": instance_type},
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container("main", resources={"requests": figures, "limits": figures})],
    } | more


def container(name: str, **more: object) -> Object:
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {"name": name, "image": "simulated", "securityContext": security} | more


def job(space: str, name: str, spec: Object, labels: Object | None = None, **more: object) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": space, "labels": labels or {}},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": {"job": name}}, "spec": spec}} | more,
    }


def hyperpod_job(space: str, name: str, replicas: int, gpus: int, labels: Object | None = None) -> Object:
    template = {"metadata": {"labels": {"job": name}}, "spec": pod_spec(gpus, 0)}
    return {
        "apiVersion": HYPERPOD,
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": name, "namespace": space, "labels": labels or {}},
        "spec": {
            "nprocPerNode": str(gpus),
            "replicaSpecs": [{"name": "pods", "replicas": replicas, "maxReplicas": replicas, "template": template}],
            "runPolicy": {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": -1},
        },
    }


def phases(api: Api, space: str, selector: str = "") -> dict[str, str]:
    pods = api.list("v1", "Pod", space, labelSelector=selector)
    return {pod["metadata"]["name"]: pod["status"].get("phase", "") for pod in pods}


def state(api: Api, thing: Object) -> str:
    """The last condition that is True."""
    meta = thing["metadata"]
    found = api.get(thing["apiVersion"], thing["kind"], meta["namespace"], meta["name"])
    true = [item["type"] for item in found.get("status", {}).get("conditions") or [] if item["status"] == "True"]
    return true[-1] if true else ""


def running(cluster: Cluster, space: str, selector: str, count: int = 1) -> list[Object]:
    """Wait until exactly `count` pods match and all run; answers them."""

    def check() -> list[Object] | None:
        pods = cluster.api.list("v1", "Pod", space, labelSelector=selector)
        return pods if [pod["status"].get("phase") for pod in pods] == ["Running"] * count else None

    return cluster.wait(f"{count} running pods with {selector} in {space}", check, 120)


def reason_of_waiting(cluster: Cluster, space: str, selector: str) -> str:
    """Why the scheduler does not place the one pod that matches."""

    def check() -> str | None:
        pods = cluster.api.list("v1", "Pod", space, labelSelector=selector)
        states = [state for pod in pods for state in pod["status"].get("conditions") or []]
        return next((s["message"] for s in states if s["type"] == "PodScheduled" and s["status"] == "False"), None)

    return cluster.wait(f"the scheduler to refuse {selector} in {space}", check, 120)


def test_the_schemas_of_the_fast_tests_are_those_of_the_pinned_operators() -> None:
    for name, text in make.texts().items():
        assert (Path(make.__file__).parent / name).read_text(encoding="utf-8") == text, (
            f"{name}: run render/crds/make.py"
        )


@pytest.mark.parametrize("kind", INSTANCES)
def test_a_node_has_the_figures_and_labels_of_its_type(api: Api, kind: str) -> None:
    (node,) = api.list("v1", "Node", labelSelector=f"node.kubernetes.io/instance-type={kind}")
    assert node["status"]["allocatable"] == INSTANCES[kind].allocatable()
    assert node["metadata"]["labels"]["sagemaker.amazonaws.com/node-health-status"] == "Schedulable"
    assert node["metadata"]["labels"]["sagemaker.amazonaws.com/deep-health-check-status"] == "Passed"
    assert "taints" not in node["spec"]


def test_a_job_binds_by_its_devices_and_runs_until_told(cluster: Cluster, api: Api, space: str) -> None:
    api.create(job(space, "first", pod_spec(4, 1)))
    (pod,) = running(cluster, space, "job=first")
    assert pod["spec"]["nodeName"] == "sim-g6e-12xlarge-0"
    api.create(job(space, "second", pod_spec(4, 1)))
    assert "1 Insufficient nvidia.com/gpu" in reason_of_waiting(cluster, space, "job=second")
    born_to_end = job(space, "third", pod_spec(0, 0))
    born_to_end["spec"]["template"]["metadata"]["annotations"] = {nodes.EXIT_CODE: "0"}
    api.create(born_to_end)
    cluster.wait("the third job to complete by itself", lambda: state(api, born_to_end) == "Complete")
    assert phases(api, space, "job=first") == {pod["metadata"]["name"]: "Running"}
    assert nodes.finish(api, space, "job=first") == [pod["metadata"]["name"]]
    cluster.wait("the first job to complete", lambda: state(api, job(space, "first", {})) == "Complete")
    running(cluster, space, "job=second")


def test_an_exit_status_reaches_the_jobs_failure_policy(cluster: Cluster, api: Api, space: str) -> None:
    rules = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}]}
    refused = job(space, "refused", pod_spec(1, 0), podFailurePolicy=rules, backoffLimit=5)
    api.create(refused)
    running(cluster, space, "job=refused")
    nodes.finish(api, space, "job=refused", 2)
    cluster.wait("the job to fail", lambda: state(api, refused) == "Failed")
    conditions = api.get("batch/v1", "Job", space, "refused")["status"]["conditions"]
    assert {item["reason"] for item in conditions} == {"PodFailurePolicy"}
    assert len(phases(api, space)) == 1, "no retry"


def test_init_containers_are_done_and_sidecars_run(cluster: Cluster, api: Api, space: str) -> None:
    first = [container("fetch"), container("side", restartPolicy="Always")]
    api.create(job(space, "inits", pod_spec(0, 0, initContainers=first)))
    (pod,) = running(cluster, space, "job=inits")
    states = {item["name"]: list(item["state"]) for item in pod["status"]["initContainerStatuses"]}
    assert states == {"fetch": ["terminated"], "side": ["running"]}


def test_an_unhealthy_node_takes_no_pods(cluster: Cluster, api: Api, space: str) -> None:
    nodes.set_health(api, "sim-g6e-12xlarge-0", "Unschedulable")
    try:
        api.create(job(space, "waits", pod_spec(1, 0)))
        # The tainted node, and the real one, which is kept for pods that ask for it.
        assert "2 node(s) had untolerated taint(s)" in reason_of_waiting(cluster, space, "job=waits")
    finally:
        nodes.set_health(api, "sim-g6e-12xlarge-0", "Schedulable")
    running(cluster, space, "job=waits")


def test_a_stopping_pod_keeps_its_devices_until_it_is_gone(cluster: Cluster, api: Api, space: str) -> None:
    slow = job(space, "slow", pod_spec(4, 1))
    slow["spec"]["template"]["metadata"]["annotations"] = {nodes.STOP_AFTER: "3s"}
    api.create(slow)
    (old,) = running(cluster, space, "job=slow")
    api.delete(slow)
    api.create(job(space, "next", pod_spec(4, 1)))
    assert "Insufficient nvidia.com/gpu" in reason_of_waiting(cluster, space, "job=next")
    assert phases(api, space, "job=slow") == {old["metadata"]["name"]: "Running"}
    running(cluster, space, "job=next")
    assert phases(api, space, "job=slow") == {}


def test_removed_nodes_take_their_pods_along(cluster: Cluster, api: Api, space: str) -> None:
    names = nodes.add(api, "ml.p4d.24xlarge", 2, group="spare")
    assert names == ["sim-spare-0", "sim-spare-1"]
    selector = {"sagemaker.amazonaws.com/instance-group-name": "spare"}
    api.create(job(space, "doomed", pod_spec(8, 4, nodeSelector=selector), backoffLimit=3))
    running(cluster, space, "job=doomed")
    nodes.remove(api, names)
    cluster.wait(
        "its pod to be gone and the next one to wait",
        lambda: list(phases(api, space, "job=doomed").values()) == ["Pending"],
    )


def test_hyperpod_refuses_a_misspelt_key(api: Api, space: str) -> None:
    wrong = hyperpod_job(space, "wrong", 1, 1)
    wrong["spec"]["runPolicy"]["cleanPodPolice"] = "All"
    with pytest.raises(ApiError, match=r'unknown field "spec.runPolicy.cleanPodPolice"'):
        api.create(wrong)
    with pytest.raises(ApiError, match=r".spec.runPolicy.cleanPodPolice: field not declared in schema"):
        api.apply(wrong)


def test_hyperpod_job_from_creation_to_deletion(cluster: Cluster, api: Api, space: str) -> None:
    thing = hyperpod_job(space, "train", 2, 2)
    api.create(thing)
    pods = running(cluster, space, "HPJob=train", 2)
    assert [pod["metadata"]["name"] for pod in pods] == ["train-pods-0", "train-pods-1"]
    env = {item["name"]: item["value"] for item in pods[0]["spec"]["containers"][0]["env"]}
    assert env == {"NNODES": "2"}
    cluster.wait("the job to run", lambda: state(api, thing) == "Running")
    nodes.finish(api, space, "HPJob=train")
    cluster.wait("the job to complete", lambda: state(api, thing) == "Completed")
    cluster.wait("its pods to be cleaned", lambda: phases(api, space) == {})
    again = hyperpod_job(space, "again", 2, 2)
    api.create(again)
    running(cluster, space, "HPJob=again", 2)
    api.delete(again)
    cluster.wait("the deleted job's pods to be gone", lambda: phases(api, space) == {}, 90)


def queue(api: Api, space: str, gpus: int) -> Object:
    """A queue with a quota of GPUs on g6e nodes, named as the namespace. Answers the label that chooses it."""
    quotas = {"cpu": 100, "memory": "1Ti", "nvidia.com/gpu": gpus, "vpc.amazonaws.com/efa": 4}
    labels = {"node.kubernetes.io/instance-type": G6E}
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    group = {"coveredResources": list(quotas), "flavors": [{"name": space, "resources": resources}]}
    own = {"matchLabels": {"kubernetes.io/metadata.name": space}}
    for kind, namespace, spec in (
        ("ResourceFlavor", None, {"nodeLabels": labels}),
        ("ClusterQueue", None, {"namespaceSelector": own, "resourceGroups": [group]}),
        ("LocalQueue", space, {"clusterQueue": space}),
    ):
        meta = {"name": space} | ({"namespace": namespace} if namespace else {})
        api.create({"apiVersion": KUEUE, "kind": kind, "metadata": meta, "spec": spec})
    return {"kueue.x-k8s.io/queue-name": space}


def test_kueue_admits_one_job_and_holds_the_other(cluster: Cluster, api: Api, space: str) -> None:
    labels = queue(api, space, 4)
    plain = job(space, "plain", pod_spec(4, 1, nodeSelector={}), labels)
    api.create(plain)
    (pod,) = running(cluster, space, "job=plain")
    assert pod["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": G6E}, "the flavor's"
    queued = hyperpod_job(space, "queued", 1, 4, labels)
    queued["spec"]["replicaSpecs"][0]["template"]["spec"]["nodeSelector"] = {}
    api.create(queued)
    cluster.wait("the second job to be suspended", lambda: state(api, queued) == "Suspended")
    assert phases(api, space, "job=queued") == {}
    nodes.finish(api, space, "job=plain")
    (pod,) = running(cluster, space, "job=queued")
    assert pod["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": G6E}
    third = job(space, "third", pod_spec(4, 1), labels)
    api.create(third)
    cluster.wait("the third job to be suspended", lambda: api.get("batch/v1", "Job", space, "third")["spec"]["suspend"])
    nodes.finish(api, space, "job=queued")
    running(cluster, space, "job=third")


def ray_job(
    space: str, image: str, entrypoint: str, on: Object, worker: Object, labels: Object | None = None
) -> Object:
    """A RayJob with a head and one worker. `on` sends all pods somewhere, `worker` is what the worker asks for."""
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}}
    limits = {"memory": "3Gi"}  # a head with its dashboard does not start in 1

    def template(name: str, resources: Object) -> Object:
        main = container(
            name,
            image=image,
            imagePullPolicy="Never",
            env=[{"name": "RAY_AUTH_MODE", "value": "disabled"}],
            resources={"requests": resources, "limits": {k: v for k, v in resources.items() if k != "cpu"} | limits},
            volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}],
        )
        security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
        return {"spec": {"securityContext": security, "volumes": [shm], "containers": [main], **on}}

    small = {"cpu": "100m", "memory": "1Gi"}
    submitter = template("submitter", {"cpu": "50m", "memory": "512Mi"})
    submitter["spec"]["restartPolicy"] = "Never"
    start = {"num-cpus": "1", "object-store-memory": "100000000"}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "ray", "namespace": space, "labels": labels or {}},
        "spec": {
            "entrypoint": entrypoint,
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 0,
            "submitterPodTemplate": submitter,
            "rayClusterSpec": {
                "rayVersion": "2.60.0",
                "headGroupSpec": {"rayStartParams": start | {"num-gpus": "0"}, "template": template("head", small)},
                "workerGroupSpecs": [
                    {
                        "groupName": "rollout",
                        "replicas": 1,
                        "minReplicas": 1,
                        "maxReplicas": 1,
                        "rayStartParams": start,
                        "template": template("worker", small | worker),
                    }
                ],
            },
        },
    }


def test_a_simulated_ray_job_under_kueue(cluster: Cluster, api: Api, space: str) -> None:
    labels = queue(api, space, 4)
    blocker = job(space, "blocker", pod_spec(4, 1), labels)
    api.create(blocker)
    running(cluster, space, "job=blocker")
    thing = ray_job(
        space, "simulated", "python -c 1", {}, {"nvidia.com/gpu": "4", "vpc.amazonaws.com/efa": "1"}, labels
    )
    api.create(thing)
    cluster.wait("the RayJob to be suspended", lambda: _deployment(api, space) == "Suspended")
    assert phases(api, space, "ray.io/cluster") == {}
    nodes.finish(api, space, "job=blocker")
    head = running(cluster, space, "ray.io/node-type=head")[0]
    worker = running(cluster, space, "ray.io/node-type=worker,ray.io/group=rollout")[0]
    assert head["spec"]["containers"][0]["resources"]["limits"] == {"memory": "3Gi"}
    assert worker["spec"]["nodeName"] == "sim-g6e-12xlarge-0"
    assert worker["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "4"
    api.delete(thing)
    cluster.wait("the deleted RayJob's pods to be gone", lambda: phases(api, space, "ray.io/cluster") == {}, 90)


def _deployment(api: Api, space: str) -> str:
    return str(api.get("ray.io/v1", "RayJob", space, "ray").get("status", {}).get("jobDeploymentStatus", ""))


def test_a_real_ray_job_succeeds(cluster: Cluster, api: Api, space: str) -> None:
    image = cluster.image(
        images.Recipe("localhost/lingoss-ray:1", RAY / "Containerfile", RAY, arguments={"BASE": images.base()})
    )
    code = "import ray; ray.init(address='auto'); f = ray.remote(num_cpus=1)(lambda: 6 * 7); assert ray.get(f.remote()) == 42"
    thing = ray_job(space, image, f'python -c "{code}"', nodes.ON_REAL_NODE, {})
    api.create(thing)

    def done() -> Object | None:
        status: Object = api.get("ray.io/v1", "RayJob", space, "ray").get("status", {})
        return status if status.get("jobStatus") in ("SUCCEEDED", "FAILED", "STOPPED") else None

    status = cluster.wait("the real RayJob to end", done, 240)
    # The program itself looks at the answer: what it prints may be lost when its cluster goes before the log is read.
    assert status["jobStatus"] == "SUCCEEDED"
    cluster.wait("its Ray cluster to be gone", lambda: phases(api, space, "ray.io/cluster") == {}, 90)
