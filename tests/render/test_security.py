# SPDX-License-Identifier: MIT-0
"""What no pod of any render may do: more than the restricted profile, ask the API, see a secret, reach the Hub."""

import copy
import dataclasses
import json
import re
from typing import Any

import charts
import pytest
from charts import Pod, env

from cases import CASES, FEW, Case, everywhere

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


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("hostNetwork", True, "hostNetwork"),
        ("hostPID", True, "hostPID"),
        ("volumes", [{"name": "x", "hostPath": {"path": "/"}}], "volume type hostPath"),
        ("volumes", [{"name": "x", "nfs": {"server": "x", "path": "/"}}], "volume type nfs"),
        ("securityContext.runAsNonRoot", False, "pod runAsNonRoot"),
        ("securityContext.runAsUser", 0, "pod runAsUser or runAsGroup 0"),
        ("securityContext.seccompProfile", {"type": "Unconfined"}, "pod seccompProfile"),
        ("securityContext.sysctls", [], "pod sysctls"),
        ("initContainers.0.securityContext.allowPrivilegeEscalation", True, "allowPrivilegeEscalation"),
        ("initContainers.0.securityContext.readOnlyRootFilesystem", None, "readOnlyRootFilesystem"),
        ("containers.0.securityContext.privileged", True, "privileged"),
        ("containers.0.securityContext.procMount", "Unmasked", "procMount"),
        ("containers.0.securityContext.runAsNonRoot", False, "runAsNonRoot"),
        ("containers.0.securityContext.runAsUser", 0, "runAsUser"),
        ("containers.0.securityContext.seccompProfile", {"type": "Unconfined"}, "seccompProfile"),
        ("containers.0.securityContext.capabilities.drop", [], "capabilities.drop"),
        ("containers.0.securityContext.capabilities.add", ["IPC_LOCK"], "capabilities.add"),
        ("containers.0.ports", [{"containerPort": 1, "hostPort": 1}], "hostPort"),
    ],
)
def test_the_check_finds_each_breach(field: str, value: Any, found: str) -> None:
    (pod,) = [pod for pod in FEW[1].pods() if pod.part == "prepare"]
    spec = copy.deepcopy(pod.spec)
    *above, last = field.split(".")
    section: Any = spec
    for key in above:
        section = section[int(key)] if key.isdigit() else section[key]
    section[last] = value
    assert unrestricted(dataclasses.replace(pod, spec=spec)) == {found}


JOBS = {"batch/jobs", "ray.io/rayjobs", "sagemaker.amazonaws.com/hyperpodpytorchjobs"}
STAGE = {
    "apps/deployments",
    "/services",
    "/configmaps",
    "/serviceaccounts",
    "networking.k8s.io/networkpolicies",
    "policy/poddisruptionbudgets",
}
RIGHTS: dict[str, dict[str, set[str]]] = {
    "guard": {**{name: {"get", "list"} for name in JOBS}, "/persistentvolumeclaims": {"get"}},
    "cleanup": {name: {"list", "delete"} for name in JOBS | STAGE},
}
"""The parts that talk to the API, and the verbs that they have, on a layout that can have all kinds of jobs."""


def rights(role: charts.Manifest) -> dict[str, set[str]]:
    """group/resource to verbs of a Role."""
    return {
        f"{group}/{resource}": set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


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
def test_only_the_hooks_that_ask_the_cluster_have_a_token_of_the_api(case: Case) -> None:
    for pod in case.pods():
        commands = [container.get("command", [])[:3] for container in pod.containers]
        asks = ["lingoss", "guard", "cluster"] in commands or ["lingoss", "guard", "cleanup"] in commands
        assert pod.spec["automountServiceAccountToken"] is asks, pod.name
        assert not asks or pod.part in RIGHTS, pod.name
        for volume in pod.spec.get("volumes", []):
            for source in (volume.get("projected") or {}).get("sources", []):
                assert "serviceAccountToken" not in source, f"{pod.name} volume {volume['name']}"


@everywhere
def test_only_the_hooks_have_a_role_and_it_holds_what_they_do(case: Case) -> None:
    manifests = case.manifests()
    assert charts.of_kind(manifests, "ClusterRole", "ClusterRoleBinding") == []
    accounts = {pod.part: pod.spec["serviceAccountName"] for pod in charts.pods(manifests)}
    for binding in charts.of_kind(manifests, "RoleBinding"):
        part = binding["metadata"]["labels"]["app.kubernetes.io/component"]
        assert [subject["name"] for subject in binding["subjects"]] == [accounts[part]]
    for role in charts.of_kind(manifests, "Role"):
        part = role["metadata"]["labels"]["app.kubernetes.io/component"]
        wanted = RIGHTS[part]
        if case.layout == "local-cpu":  # neither Ray nor HyperPod: their kinds need not be there, nor rights on them
            wanted = {name: verbs for name, verbs in wanted.items() if name not in JOBS - {"batch/jobs"}}
        assert rights(role) == wanted, role["metadata"]["name"]
        for rule in role["rules"]:
            named = [case.values.get("global.storage.existingClaim", "lingoss-data")]
            assert rule.get("resourceNames") == (named if "persistentvolumeclaims" in rule["resources"] else None)


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
def test_every_container_can_write_tmp_and_nothing_else_of_its_image(case: Case) -> None:
    for pod in case.pods():
        for container in pod.containers:
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]], (
                f"{pod.name} {container['name']}"
            )
