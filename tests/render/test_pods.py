# SPDX-License-Identifier: MIT-0
"""Resources, placement and mounts of all pods of all renders: layouts × stages × engines, and the variants."""

import json
from collections import Counter

import charts
import yaml
from charts import env, limits, requests

from cases import MATRIX, Case, everywhere, values

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"


@everywhere
def test_memory_gpus_and_efa_devices_are_limited_to_what_is_requested(case: Case) -> None:
    for pod in case.pods():
        for container in pod.containers:
            asked, limited = requests(container), limits(container)
            where = f"{pod.name} {container['name']}"
            assert "memory" in limited, where
            for resource in ("memory", GPU, EFA, *(name for name in limited if name.startswith("hugepages-"))):
                assert asked.get(resource) == limited.get(resource), f"{where} {resource}"


@everywhere
def test_cpu_is_requested_and_never_limited(case: Case) -> None:
    for pod in case.pods():
        for container in pod.containers:
            assert requests(container).get("cpu"), f"{pod.name} {container['name']}"
            assert "cpu" not in limits(container), f"{pod.name} {container['name']}"


@everywhere
def test_variables_of_efa_stand_only_beside_an_efa_device(case: Case) -> None:
    network = values()["global.network.efa.env"].default | case.values.get("global.network.efa.env", {})
    for pod in case.pods():
        for container in pod.containers:
            found = {name for name in env(container) if name.startswith(("FI_", "RDMAV_", "OFI_")) or name in network}
            assert not found or int(limits(container).get(EFA, 0)) > 0, f"{pod.name} {container['name']}: {found}"


@everywhere
def test_nccl_proto_is_absent_unless_it_is_set(case: Case) -> None:
    wanted = case.values.get("global.network.nccl.proto")
    for pod in case.pods():
        for container in pod.containers:
            on_gpu = bool(limits(container).get(GPU))
            assert env(container).get("NCCL_PROTO") == (wanted if on_gpu else None), f"{pod.name} {container['name']}"


@everywhere
def test_gpu_containers_have_shared_memory_in_memory_within_their_limit(case: Case) -> None:
    for pod in case.pods():
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
        for container in pod.containers:
            if not limits(container).get(GPU):
                continue
            (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == "/dev/shm"]
            shared = volumes[mount["name"]]["emptyDir"]
            assert shared["medium"] == "Memory", pod.name
            assert charts.gibibytes(shared["sizeLimit"]) < charts.gibibytes(limits(container)["memory"]), pod.name


@everywhere
def test_no_pod_template_holds_a_version_of_the_chart_or_a_revision(case: Case) -> None:
    version = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())["version"]
    for pod in case.pods():
        held = json.dumps([pod.metadata, pod.spec])
        assert "helm.sh/chart" not in held, pod.name
        assert "app.kubernetes.io/version" not in held, pod.name
        assert f'"{version}"' not in held, pod.name


@everywhere
def test_gpu_pods_stay_on_healthy_nodes_of_hyperpod(case: Case) -> None:
    layout = charts.nested({**charts.layout(case.layout), **case.values})
    healthy = {"key": "sagemaker.amazonaws.com/node-health-status", "operator": "In", "values": ["Schedulable"]}
    for pod in case.pods():
        rules = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        terms = required.get("nodeSelectorTerms", [])
        wanted = layout["global"].get("hyperpod", {}).get("nodeHealth", False) and pod.amount(GPU) > 0
        held = bool(terms) and all(healthy in term.get("matchExpressions", []) for term in terms)
        assert held is bool(wanted), pod.name
        assert "node-health-status" not in json.dumps(pod.spec.get("tolerations", [])), pod.name


@everywhere
def test_gpu_pods_are_bound_to_the_instance_type_of_the_layout(case: Case) -> None:
    instance = charts.layout(case.layout)["global"]["layout"].get("instanceType")
    for pod in case.pods():
        bound = (pod.spec.get("nodeSelector") or {}).get("node.kubernetes.io/instance-type")
        assert bound == (instance or None if pod.amount(GPU) else None), pod.name


@everywhere
def test_what_a_pod_mounts_exists(case: Case) -> None:
    manifests = case.manifests()
    maps = {manifest["metadata"]["name"] for manifest in charts.of_kind(manifests, "ConfigMap")}
    accounts = {manifest["metadata"]["name"] for manifest in charts.of_kind(manifests, "ServiceAccount")} | {"default"}
    for pod in charts.pods(manifests):
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
        mounted = [(container["name"], mount) for container in pod.containers for mount in container["volumeMounts"]]
        assert {mount["name"] for _, mount in mounted} == set(volumes), pod.name
        twice = Counter((container, mount["mountPath"]) for container, mount in mounted)
        assert [place for place, count in twice.items() if count > 1] == [], pod.name
        assert {volume["configMap"]["name"] for volume in volumes.values() if "configMap" in volume} <= maps, pod.name
        assert pod.spec["serviceAccountName"] in accounts, pod.name


@everywhere
def test_pods_fit_the_nodes_of_the_layout(case: Case) -> None:
    layout = charts.layout(case.layout)["global"]["layout"]
    for pod in case.pods():
        for resource, room in ((GPU, layout["gpus"]), (EFA, layout.get("efa", 0))):
            assert pod.amount(resource) <= room, f"{pod.name} {resource}"
        main = pod.spec["containers"]
        memory = sum(charts.gibibytes(limits(container)["memory"]) for container in main)
        assert memory <= layout["memoryGi"], f"{pod.name} memory"
        assert sum(charts.cores(requests(container)["cpu"]) for container in main) <= layout["cpu"], f"{pod.name} cpu"


@everywhere
def test_a_stage_asks_for_no_more_gpus_than_the_layout_has(case: Case) -> None:
    layout = charts.nested({**charts.layout(case.layout), **case.values})["global"]["layout"]
    asked = sum(pod.amount(GPU) * charts.count(pod) for pod in case.pods())
    assert asked <= layout["nodes"] * layout["gpus"]
    if layout["gpus"] and case in MATRIX and case.stage not in ("none", "prepare"):
        assert asked > 0
