# SPDX-License-Identifier: MIT-0
"""Who may ask the API server for what: the hooks for their lists while they run, nobody else for anything."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster import planted, world
from cluster.changes import no_hooks
from cluster.release import Release
from harness import images, nodes
from harness.api import Object
from harness.cluster import Cluster

P5 = "p5-48xlarge"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
Rights = dict[tuple[str, str], set[str]]
GUARD: Rights = {
    ("jobs.batch", ""): {"get", "list"},
    ("rayjobs.ray.io", ""): {"get", "list"},
    ("hyperpodpytorchjobs.sagemaker.amazonaws.com", ""): {"get", "list"},
    ("persistentvolumeclaims", "lingoss-data"): {"get"},
}
CLEANUP: Rights = {
    ("jobs.batch", ""): {"list", "delete"},
    ("rayjobs.ray.io", ""): {"list", "delete"},
    ("hyperpodpytorchjobs.sagemaker.amazonaws.com", ""): {"list", "delete"},
    ("deployments.apps", ""): {"list", "delete"},
    ("services", ""): {"list", "delete"},
    ("configmaps", ""): {"list", "delete"},
    ("serviceaccounts", ""): {"list", "delete"},
    ("networkpolicies.networking.k8s.io", ""): {"list", "delete"},
    ("poddisruptionbudgets.policy", ""): {"list", "delete"},
}
DENIED = (
    "get secrets",
    "list pods",
    "create pods",
    "get pods/log",
    "watch jobs.batch",
    "create jobs.batch",
    "delete jobs.batch",
    "patch jobs.batch",
    "update rayjobs.ray.io",
    "delete hyperpodpytorchjobs.sagemaker.amazonaws.com",
    "get persistentvolumeclaims/another",
    "list persistentvolumeclaims",
    "get configmaps",
    "list namespaces",
    "create serviceaccounts/token",
)


def rights(cluster: Cluster, namespace: str, account: str, where: str = "") -> Rights:
    """What `kubectl auth can-i --list` says that an account may do: (resource or URL, name) -> verbs."""
    listed = cluster.kubectl(
        "auth", "can-i", "--list", "--no-headers", *_as(namespace, account), "-n", where or namespace
    )
    found: Rights = {}
    for line in listed.splitlines():
        match = re.fullmatch(r"(\S*)\s+\[(.*?)\]\s+\[(.*?)\]\s+\[(.*?)\]\s*", line)
        assert match, f"kubectl auth can-i --list says {line!r}"
        found.setdefault((match[1] or match[2], match[3]), set()).update(match[4].split())
    return found


def _as(namespace: str, account: str) -> list[str]:
    return [f"--as=system:serviceaccount:{namespace}:{account}"]


def beyond_everyone(cluster: Cluster, namespace: str, account: str, where: str = "") -> Rights:
    """What an account may do that an account which nobody has named in a Role may not."""
    everyone = rights(cluster, namespace, "nobody-knows-me", where)
    assert ("selfsubjectreviews.authentication.k8s.io", "") in everyone
    mine = rights(cluster, namespace, account, where)
    return {
        what: verbs - everyone.get(what, set()) for what, verbs in mine.items() if verbs - everyone.get(what, set())
    }


def has_token(pod: Object) -> bool:
    """Whether a pod carries an account's token, by its volumes and by their mounts."""
    sources = [s for v in pod["spec"].get("volumes", []) for s in v.get("projected", {}).get("sources", [])]
    containers = pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
    mounts = [mount["mountPath"] for container in containers for mount in container.get("volumeMounts", [])]
    found = any("serviceAccountToken" in source for source in sources)
    assert found == (TOKEN in mounts)
    return found


@pytest.fixture
def machine(layout_nodes: Callable[[str, int], list[str]]) -> None:
    """What layout p5-48xlarge has."""
    layout_nodes("ml.p5.48xlarge", 1)


@pytest.fixture
def helm() -> Iterator[ThreadPoolExecutor]:
    """Runs Helm beside the test."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def _held(part: str = "guard") -> str:
    """Values that make each pod of a hook wait until somebody writes /tmp/go in it."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    limits = {"memory": "64Mi"}
    command = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done"]
    hold = {
        "name": "hold",
        "image": images.TOOLBOX,
        "command": command,
        "securityContext": security,
        "resources": {"limits": limits},
    }
    return f"{part}.pod:={json.dumps(nodes.ON_REAL_NODE | {'initContainers': [hold]})}"


def test_the_guard_can_do_what_it_must_and_no_more(
    machine: None, release: Callable[..., Release], helm: ThreadPoolExecutor
) -> None:
    one = release(P5, sets=["global.stage=none", _held()])
    planted.prepare(one.root)
    one.install()
    space, account = one.namespace, f"{one.fullname}-guard"
    assert beyond_everyone(one.cluster, space, account) == {}

    upgrade = helm.submit(one.stage, "sft")
    first = _guard(one, "guard")
    assert has_token(first)
    assert first["spec"]["serviceAccountName"] == account
    assert beyond_everyone(one.cluster, space, account) == GUARD
    assert beyond_everyone(one.cluster, space, account, "default") == {}
    assert beyond_everyone(one.cluster, space, "default") == {}
    for question in DENIED:
        answer = one.cluster.kubectl("auth", "can-i", *question.split(), *_as(space, account), "-n", space, check=False)
        assert answer.strip() == "no", question
    _go(one, first)

    second = _guard(one, "guard-volume")
    assert not has_token(second)
    _go(one, second)
    assert upgrade.result(120).returncode == 0
    no_hooks(one)
    assert beyond_everyone(one.cluster, space, account) == {}


def test_the_cleanup_can_do_what_it_must_and_no_more(release: Callable[..., Release], helm: ThreadPoolExecutor) -> None:
    one = release(P5, sets=["global.stage=none", "guard.enabled=false", _held("cleanup")])
    one.install()
    one.upgrade()  # the first revision needs no such hook: Helm knows all of it
    space, account = one.namespace, f"{one.fullname}-cleanup"

    uninstall = helm.submit(one.uninstall)
    pod = _guard(one, "cleanup")
    assert has_token(pod)
    assert beyond_everyone(one.cluster, space, account) == CLEANUP
    assert beyond_everyone(one.cluster, space, account, "default") == {}
    _go(one, pod)
    assert uninstall.result(120).returncode == 0
    no_hooks(one)


def _guard(one: Release, name: str) -> Object:
    """The pod of one of the hooks' jobs, once it waits."""
    selector = f"batch.kubernetes.io/job-name={one.fullname}-{name}"

    def waiting() -> Object | None:
        for pod in one.api.list("v1", "Pod", one.namespace, labelSelector=selector):
            states = pod["status"].get("initContainerStatuses") or []
            if any("running" in state["state"] for state in states):
                return pod
        return None

    return one.cluster.wait(f"the pod of {name} to wait in {one.namespace}", waiting, 90)


def _go(one: Release, pod: Object) -> None:
    name = pod["metadata"]["name"]
    one.cluster.kubectl("exec", name, "--namespace", one.namespace, "--container", "hold", "--", "touch", "/tmp/go")


STAGES: tuple[tuple[str, list[str], set[str]], ...] = (
    ("prepare", [], {"prepare"}),
    ("sft", ["sft.runtime=job"], {"sft"}),
    ("sft", ["sft.runtime=hyperpod"], {"sft"}),
    ("grpo", ["grpo.engine=trl"], {"grpo"}),
    ("grpo", ["grpo.engine=openrlhf"], {"grpo"}),
    ("evaluate", [], {"evaluate", "report"}),
    ("serve", [], {"serve"}),
)


def test_no_pod_of_a_stage_has_a_token_and_no_account_a_right(machine: None, release: Callable[..., Release]) -> None:
    one = release(P5, sets=["global.stage=none", "guard.enabled=false", "storage.shell.enabled=true"])
    one.install()
    seen = set()
    for stage, choice, parts in STAGES:
        one.stage(stage, *choice)
        for part in parts:
            one.cluster.wait(f"pods of {part}", lambda part=part: world.pods(one.api, one.namespace, one.name, part))  # type: ignore[misc]
        if choice == ["grpo.engine=openrlhf"]:
            one.cluster.wait(
                "Ray's three kinds of pods", lambda: len(world.pods(one.api, one.namespace, one.name, "grpo")) == 3
            )
        for pod in one.api.list("v1", "Pod", one.namespace):
            name = pod["metadata"]["name"]
            assert pod["spec"]["automountServiceAccountToken"] is False, name
            assert not has_token(pod), name
            seen.add(pod["metadata"]["labels"]["app.kubernetes.io/component"])
        for account in one.api.list("v1", "ServiceAccount", one.namespace):
            name = account["metadata"]["name"]
            assert beyond_everyone(one.cluster, one.namespace, name) == {}, name
            # Kubernetes makes `default` itself; the pods that use it are looked at above.
            assert name == "default" or account["automountServiceAccountToken"] is False, name
    assert seen == {"prepare", "sft", "grpo", "evaluate", "report", "serve", "shell"}
    assert one.api.list("rbac.authorization.k8s.io/v1", "RoleBinding", one.namespace) == []
