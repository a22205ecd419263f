# SPDX-License-Identifier: MIT-0
"""What holds for all pods of all renders: layouts × stages × engines, and the variants."""

import json
import re
from collections import Counter
from typing import Any

import charts
import yaml
from charts import Pod, env, limits, requests

from cases import CASES, EXTRA, MATRIX, Case, each, everywhere, values

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
SELECTED_BY = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")
# Pod Security Standards, profile restricted.
VOLUME_TYPES = {"configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC")


def unrestricted(pod: Pod) -> set[str]:
    """Fields in which a pod is not as the restricted profile (and a read-only root filesystem) wants it."""
    found: set[str] = set()
    context = pod.spec.get("securityContext") or {}
    found |= {name for name in HOST_FIELDS if pod.spec.get(name)}
    found |= {
        f"volume type {kind}"
        for volume in pod.spec.get("volumes", [])
        for kind in set(volume) - {"name"} - VOLUME_TYPES
    }
    found |= {f"pod {name}" for name in ("sysctls", "seLinuxOptions", "windowsOptions") if name in context}
    if context.get("runAsNonRoot") is not True:
        found.add("pod runAsNonRoot")
    if context.get("runAsUser", 1) == 0 or context.get("runAsGroup", 1) == 0:
        found.add("pod runAsUser or runAsGroup 0")
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.add("pod seccompProfile")
    for container in pod.containers:
        own = container.get("securityContext") or {}
        allowed: dict[str, Any] = {
            "allowPrivilegeEscalation": [False],
            "readOnlyRootFilesystem": [True],
            "privileged": [None, False],
            "procMount": [None],
            "runAsNonRoot": [None, True],
            "seccompProfile": [None, {"type": "RuntimeDefault"}],
            "seLinuxOptions": [None],
        }
        found |= {name for name, good in allowed.items() if own.get(name) not in good}
        found |= {name for name in ("runAsUser", "runAsGroup") if own.get(name, 1) == 0}
        capabilities = own.get("capabilities") or {}
        if capabilities.get("drop") != ["ALL"]:
            found.add("capabilities.drop")
        if capabilities.get("add"):
            found.add("capabilities.add")
        if any("hostPort" in port for port in container.get("ports", [])):
            found.add("hostPort")
    return found


@everywhere
def test_every_pod_but_the_owner_job_meets_the_restricted_profile(case: Case) -> None:
    assert {pod.name: unrestricted(pod) for pod in case.pods() if unrestricted(pod) and pod.part != "owner"} == {}


def test_only_the_opt_in_owner_job_is_unrestricted_and_only_where_it_must() -> None:
    asked = [case for case in CASES if case.values.get("storage.owner.create")]
    owners = {case.name: [pod for pod in case.pods() if pod.part == "owner"] for case in CASES}
    assert asked, "no variant switches storage.owner.create on"
    assert {name: len(found) for name, found in owners.items() if found} == {case.name: 1 for case in asked}
    for case in asked:
        (owner,) = owners[case.name]
        assert unrestricted(owner) <= {
            "pod runAsNonRoot",
            "pod runAsUser or runAsGroup 0",
            "runAsNonRoot",
            "runAsUser",
            "runAsGroup",
            "capabilities.add",
        }
        (container,) = owner.containers
        assert set(container["securityContext"]["capabilities"]["add"]) <= {"CHOWN", "DAC_OVERRIDE", "FOWNER"}


@everywhere
def test_only_the_guard_that_asks_the_cluster_has_a_token_of_the_api(case: Case) -> None:
    for pod in case.pods():
        asks = any(container.get("command", [])[:3] == ["lingoss", "guard", "cluster"] for container in pod.containers)
        assert pod.spec["automountServiceAccountToken"] is asks, pod.name
        assert not asks or pod.part == "guard", pod.name
        for volume in pod.spec.get("volumes", []):
            for source in (volume.get("projected") or {}).get("sources", []):
                assert "serviceAccountToken" not in source, f"{pod.name} volume {volume['name']}"


@everywhere
def test_only_the_guard_has_a_role_and_it_reads_only(case: Case) -> None:
    manifests = case.manifests()
    assert charts.of_kind(manifests, "ClusterRole", "ClusterRoleBinding") == []
    guards = {pod.spec["serviceAccountName"] for pod in charts.pods(manifests) if pod.part == "guard"}
    for binding in charts.of_kind(manifests, "RoleBinding"):
        assert {subject["name"] for subject in binding["subjects"]} <= guards
    for role in charts.of_kind(manifests, "Role"):
        for rule in role["rules"]:
            assert set(rule["verbs"]) <= {"get", "list"}, role["metadata"]["name"]
            assert "secrets" not in rule["resources"], role["metadata"]["name"]
            assert "*" not in [*rule["resources"], *rule["apiGroups"]], role["metadata"]["name"]


@everywhere
def test_secrets_reach_only_the_fetch_container_of_prepare_and_the_key_of_serve(case: Case) -> None:
    for pod in case.pods():
        assert not [volume for volume in pod.spec.get("volumes", []) if "secret" in volume], pod.name
        for container in pod.containers:
            assert not [source for source in container.get("envFrom") or [] if "secretRef" in source], pod.name
            named = {
                name for name, value in env(container).items() if isinstance(value, dict) and "secretKeyRef" in value
            }
            if pod.part == "prepare" and container["name"] == "fetch":
                secret = case.values.get("storage.prepare.token.secretName", "hf-token")
                assert named == ({"HF_TOKEN"} if secret else set()), pod.name
            elif pod.part == "serve":
                assert len(named) <= 1, pod.name
            else:
                assert named == set(), f"{pod.name} {container['name']}"


@everywhere
def test_no_secret_is_written_out(case: Case) -> None:
    for pod in case.pods():
        for container in pod.containers:
            for name, value in env(container).items():
                assert not (isinstance(value, str) and re.search("TOKEN$|SECRET|PASSWORD|API_KEY", name)), (
                    f"{pod.name} {container['name']} {name}"
                )
    assert not re.search(r"\bhf_[A-Za-z0-9]{8}", json.dumps(case.manifests()))


@everywhere
def test_only_prepare_may_ask_the_hub(case: Case) -> None:
    for pod in case.pods():
        for container in pod.containers:
            online = pod.part == "prepare" and container["name"] == "fetch"
            assert (env(container).get("HF_HUB_OFFLINE") != "1") is online, f"{pod.name} {container['name']}"


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
def test_no_two_objects_have_the_same_name(case: Case) -> None:
    names = Counter((*charts.identifier(manifest).split("/"), manifest["apiVersion"]) for manifest in case.manifests())
    assert [name for name, count in names.items() if count > 1] == []


@everywhere
def test_objects_stand_in_the_namespace_of_the_release(case: Case) -> None:
    cluster_wide = {"PersistentVolume", "StorageClass"}
    for manifest in case.manifests(release="other-lingoss"):
        wanted = None if manifest["kind"] in cluster_wide else case.namespace
        assert manifest["metadata"].get("namespace") == wanted, charts.identifier(manifest)


@everywhere
def test_pods_carry_the_three_labels_that_select_them(case: Case) -> None:
    for pod in case.pods(release="other-lingoss"):
        assert pod.labels.get(SELECTED_BY[0]) == "lingoss", pod.name
        assert pod.labels.get(SELECTED_BY[1]) == "other-lingoss", pod.name
        assert re.fullmatch(r"[a-z][a-z-]{1,30}", pod.labels.get(SELECTED_BY[2], "")), pod.name


def matches(selector: dict[str, str], pod: Pod) -> bool:
    """Whether a selector picks the pods of a template, with the labels that KubeRay and the Job controller add."""
    added = {"batch.kubernetes.io/job-name": pod.owner["metadata"]["name"], "ray.io/node-type": "worker"}
    if pod.place.endswith("headGroupSpec.template"):
        added["ray.io/node-type"] = "head"
    count = charts.count(pod) if pod.owner["kind"] == "Job" else 0
    index = selector.get("batch.kubernetes.io/job-completion-index", "0")
    wanted = {key: value for key, value in selector.items() if key != "batch.kubernetes.io/job-completion-index"}
    return wanted.items() <= (pod.labels | added).items() and int(index) <= max(count - 1, 0)


def selectors(manifests: list[charts.Manifest]) -> list[tuple[str, dict[str, str]]]:
    """Every label selector that picks pods of the release, with the object that holds it."""
    found: list[tuple[str, dict[str, str]]] = []
    for manifest in manifests:
        spec, name = manifest.get("spec") or {}, charts.identifier(manifest)
        if manifest["kind"] == "Service":
            found.append((name, spec["selector"]))
        elif manifest["kind"] in ("Deployment", "PodDisruptionBudget"):
            found.append((name, spec["selector"]["matchLabels"]))
        elif manifest["kind"] == "NetworkPolicy":
            found.append((name, spec["podSelector"].get("matchLabels", {})))
            for rule in [*(spec.get("ingress") or []), *(spec.get("egress") or [])]:
                for peer in [*rule.get("from", []), *rule.get("to", [])]:
                    if "podSelector" in peer and "namespaceSelector" not in peer:
                        found.append((f"{name} peer", peer["podSelector"].get("matchLabels", {})))
    return found


@everywhere
def test_selectors_match_pods_of_this_release_only(case: Case) -> None:
    manifests = case.manifests()
    pods = charts.pods(manifests)
    for name, selector in selectors(manifests):
        if name.endswith("peer") and not selector:
            continue  # an empty peer is the whole namespace, on purpose
        assert selector.get(SELECTED_BY[1]) == "lingoss", f"{name} selects pods of other releases: {selector}"
        matched = [pod for pod in pods if matches(selector, pod)]
        assert matched, f"{name} selects no pod: {selector}"
        if not name.startswith("NetworkPolicy"):
            assert len({pod.part for pod in matched}) == 1, f"{name} selects pods of several parts"


@everywhere
def test_deployments_select_their_own_pods(case: Case) -> None:
    for deployment in charts.of_kind(case.manifests(), "Deployment"):
        selector, template = (deployment["spec"]["selector"]["matchLabels"], deployment["spec"]["template"])
        assert set(selector) == set(SELECTED_BY)
        assert selector.items() <= template["metadata"]["labels"].items()


@everywhere
def test_no_pod_template_holds_a_version_of_the_chart_or_a_revision(case: Case) -> None:
    version = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())["version"]
    for pod in case.pods():
        held = json.dumps([pod.metadata, pod.spec])
        assert "helm.sh/chart" not in held, pod.name
        assert "app.kubernetes.io/version" not in held, pod.name
        assert f'"{version}"' not in held, pod.name


def keys(value: Any) -> set[str]:
    """All keys of nested mappings."""
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in keys(inner)}
    return {key for inner in value for key in keys(inner)} if isinstance(value, list) else set()


@everywhere
def test_suspend_is_left_to_kueue(case: Case) -> None:
    assert "suspend" not in keys(case.manifests())


@everywhere
def test_names_of_what_runs_once_end_in_a_hash_and_fit(case: Case) -> None:
    for manifest in charts.run_once(case.manifests()):
        name = manifest["metadata"]["name"]
        assert re.fullmatch(r"[a-z][a-z0-9-]*-[0-9a-f]{8}", name), name
        assert len(name) <= (47 if manifest["kind"] == "RayJob" else 63), name


@everywhere
def test_all_names_and_labels_are_legal(case: Case) -> None:
    for manifest in case.manifests():
        name = manifest["metadata"]["name"]
        assert len(name) <= 63, name
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name), name
        for value in (manifest["metadata"].get("labels") or {}).values():
            assert re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value), f"{name}: {value}"


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
def test_workloads_carry_the_queue_where_one_is_given(case: Case) -> None:
    scheme, queue = (case.values.get("global.queue.scheme", "kueue"), case.values.get("global.queue.name", ""))
    if scheme == "hyperpod" and not queue:
        queue = f"hyperpod-ns-{case.values['global.queue.team']}-localqueue"
    for manifest in case.manifests():
        if not charts.pods([manifest]) or charts.is_hook(manifest):
            continue
        on_gpu = any(pod.amount(GPU) for pod in charts.pods([manifest]))
        found = manifest["metadata"]["labels"].get("kueue.x-k8s.io/queue-name", "")
        assert found == queue if on_gpu else found in ("", queue), charts.identifier(manifest)


@each([case for case in MATRIX if "-none" in case.name])
def test_stage_none_runs_nothing(case: Case) -> None:
    left = [pod.name for pod in case.pods() if not charts.is_hook(pod.owner)]
    assert left == []


@each([case for case in MATRIX if "-none" not in case.name])
def test_every_other_stage_runs_something(case: Case) -> None:
    assert [pod for pod in case.pods() if not charts.is_hook(pod.owner)]


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
def test_every_container_can_write_tmp_and_nothing_else_of_its_image(case: Case) -> None:
    for pod in case.pods():
        for container in pod.containers:
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]], (
                f"{pod.name} {container['name']}"
            )


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


def test_the_variants_cover_every_switch() -> None:
    """A variant that renders as the plain layout does shows nothing."""
    for case in EXTRA:
        plain = {name: value for name, value in case.values.items() if name in ("global.stage", "grpo.engine")}
        assert case.text() != charts.text(case.layout, plain, namespace=case.namespace), case.name
