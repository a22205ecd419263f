# SPDX-License-Identifier: MIT-0
"""How the guard asks the API server: what is a workload, when it has finished, and every way to get no answer."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_kubernetes import TOKEN, Cluster, condition, serving, status, workload
from lingoss.errors import LingossError
from lingoss.guard import api as api_module
from lingoss.guard.api import Api, in_cluster
from lingoss.guard.decide import STATES
from lingoss.guard.workloads import KINDS, hyperpod_state, job_state, list_workloads, ray_job_state

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["status", "spec", "conditions", "type", "runPolicy"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def api(cluster: Cluster, account: Path) -> Iterator[Api]:
    with serving(cluster) as port:
        yield Api(f"http://127.0.0.1:{port}", account, patience=2.0, timeout=5.0)


def found(api: Api, release: str = "lingoss") -> list[tuple[str, ...]]:
    return [(one.kind, one.name, one.stage, one.state) for one in list_workloads(api, "team-a", release)]


@pytest.mark.parametrize(
    ("spec", "told", "state"),
    [
        ({}, {}, "queued or starting"),
        ({}, {"active": 1, "ready": 0, "startTime": "2026-11-30T16:00:00Z"}, "queued or starting"),
        ({}, {"active": 4, "ready": 2}, "running"),
        ({"suspend": True}, {}, "queued"),
        ({"suspend": False}, {"conditions": [condition("Suspended")]}, "queued"),
        ({}, {"active": 1, "ready": 1, "conditions": [condition("Suspended", "False")]}, "running"),
        ({}, {"ready": 1, "conditions": [condition("SuccessCriteriaMet")]}, "running"),
        ({}, {"succeeded": 1, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]}, "finished"),
        ({}, {"failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]}, "failed"),
        ({}, {"ready": 1, "conditions": [condition("Failed", "False")]}, "running"),
    ],
)
def test_states_of_a_job(spec: dict, told: dict, state: str) -> None:
    assert job_state(workload("Job", "a", "sft", spec=spec, status=told)) == state


@pytest.mark.parametrize(
    ("deployment", "program", "suspend", "state"),
    [
        (None, None, False, "queued or starting"),
        ("Initializing", "", False, "queued or starting"),
        ("Running", "PENDING", False, "running"),
        ("Running", "RUNNING", False, "running"),
        ("Running", "FAILED", False, "running"),
        ("Retrying", "FAILED", False, "queued or starting"),
        ("Running", "SUCCEEDED", False, "finished"),
        ("Running", "STOPPED", False, "finished"),
        ("Complete", "SUCCEEDED", False, "finished"),
        ("Failed", "FAILED", False, "failed"),
        ("Failed", "", True, "failed"),
        ("ValidationFailed", "", False, "failed"),
        ("Suspended", "", True, "queued"),
        ("Suspending", "RUNNING", False, "queued"),
        ("Initializing", "", True, "queued"),
    ],
)
def test_states_of_a_ray_job(deployment: str | None, program: str | None, suspend: bool, state: str) -> None:
    told = {"jobDeploymentStatus": deployment, "jobStatus": program, "rayClusterName": "a-x7k2p"}
    assert ray_job_state(workload("RayJob", "a", "grpo", spec={"suspend": suspend}, status=told)) == state


@pytest.mark.parametrize(
    ("conditions", "suspend", "state"),
    [
        ([], False, "queued or starting"),
        (["Created"], False, "queued or starting"),
        (["Created", "Running"], False, "running"),
        (["Created", "Faulted"], False, "running"),
        (["Created", "Running", "Completed"], False, "finished"),
        (["Created", "Failed"], False, "failed"),
        (["Created", "Suspended"], True, "queued"),
    ],
)
def test_states_of_a_hyperpod_job(conditions: list[str], suspend: bool, state: str) -> None:
    spec, told = {"runPolicy": {"suspend": suspend}}, {"conditions": [condition(one) for one in conditions]}
    assert hyperpod_state(workload("HyperPodPyTorchJob", "a", "sft", spec=spec, status=told)) == state


@given(ANY)
def test_no_object_makes_the_guard_fail(item: Any) -> None:
    for kind in KINDS:
        assert kind.state(item) in STATES


def test_the_workloads_of_one_release(api: Api, cluster: Cluster) -> None:
    running = {"status": {"active": 1, "ready": 1}}
    owner = [{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "lingoss-grpo-1", "controller": True, "uid": "9"}]
    cluster.add(
        workload("Job", "lingoss-evaluate-1", "evaluate", **running),
        workload("Job", "lingoss-report-1", "report", **running),
        workload("Job", "lingoss-guard", "guard", **running),
        workload("Job", "lingoss-serve-test", "serve", **running),
        workload("Job", "other-sft-1", "sft", release="other", **running),
        workload("Job", "submitter", "grpo", metadata={"ownerReferences": owner}, **running),
        workload("Job", "going", "sft", metadata={"deletionTimestamp": "2026-11-30T16:00:00Z"}, **running),
        workload("RayJob", "lingoss-grpo-1", "grpo", status={"jobDeploymentStatus": "Running"}),
        workload("HyperPodPyTorchJob", "lingoss-sft-1", "sft", status={"conditions": [condition("Running")]}),
    )
    assert found(api) == [
        ("Job", "lingoss-evaluate-1", "evaluate", "running"),
        ("Job", "lingoss-report-1", "evaluate", "running"),
        ("Job", "going", "sft", "finished"),
        ("RayJob", "lingoss-grpo-1", "grpo", "running"),
        ("HyperPodPyTorchJob", "lingoss-sft-1", "sft", "running"),
    ]
    assert found(api, "other") == [("Job", "other-sft-1", "sft", "running")]
    assert found(api, "third") == []


def test_kinds_that_the_cluster_does_not_know_are_none(api: Api, cluster: Cluster) -> None:
    cluster.add(workload("Job", "lingoss-sft-1", "sft"))
    assert found(api) == [("Job", "lingoss-sft-1", "sft", "queued or starting")]
    assert len(cluster.asked) == 3
    cluster.unknown.add("Job")
    with pytest.raises(LingossError, match="404, this is no Kubernetes API server"):
        found(api)


def test_no_right_to_list(api: Api, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "FORBIDDEN_PATIENCE", 0.0)
    told = (
        'rayjobs.ray.io is forbidden: User "system:serviceaccount:team-a:lingoss-guard" cannot list resource "rayjobs"'
    )
    cluster.answers = [(200, b'{"items": []}'), (403, status(403, told))]
    with pytest.raises(LingossError) as refusal:
        found(api)
    assert str(refusal.value).startswith("GET /apis/ray.io/v1/namespaces/team-a/rayjobs?labelSelector=")
    assert str(refusal.value).endswith(f"403 {told}")


def test_a_role_made_a_moment_ago(api: Api, cluster: Cluster) -> None:
    cluster.add(workload("Job", "lingoss-sft-1", "sft"))
    cluster.answers = [(403, status(403, "forbidden")), (401, b"")]
    assert len(found(api)) == 1


def test_a_busy_server_is_asked_again(api: Api, cluster: Cluster) -> None:
    cluster.add(workload("Job", "lingoss-sft-1", "sft"))
    cluster.answers = [(0, b""), (503, b"starting"), (429, status(429, "too many requests"))]
    assert len(found(api)) == 1
    assert len(cluster.asked) == 6


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((500, status(500, "etcdserver: no\nleader")), "500 etcdserver: no leader$"),
        ((0, b""), "no answer .*without response"),
        ((400, b"<html>"), "400 Bad Request$"),
        ((200, b"<html>"), "not JSON: this is no Kubernetes API server"),
        ((200, b"[]"), "a JSON list, not an object"),
        ((200, b'{"items": {}}'), "holds no list of items"),
        ((200, b"\xff\xfe"), "not JSON"),
    ],
)
def test_no_usable_answer(api: Api, cluster: Cluster, answer: tuple[int, bytes], message: str) -> None:
    cluster.answers = [answer] * 20
    with pytest.raises(LingossError, match=message) as refusal:
        found(replace(api, patience=0.5))
    assert "\n" not in str(refusal.value)


def test_nobody_listens(account: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LingossError, match=f"at http://127.0.0.1:{port}: no answer .*refused"):
        Api(f"http://127.0.0.1:{port}", account, patience=0.3).get("/apis")


def test_a_server_that_never_answers(account: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = Api(f"http://127.0.0.1:{silent.getsockname()[1]}", account, patience=0.1, timeout=0.2)
        with pytest.raises(LingossError, match=r"no answer .*timed out"):
            api.get("/apis")


def test_without_a_token(api: Api, account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(LingossError, match=r"token cannot be read .*: give the pod its account"):
        found(api)


def test_outside_of_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(LingossError, match="the guard runs in a pod"):
        in_cluster()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert in_cluster().server == "https://[fd00::1]:443"


def test_over_tls_with_the_account_of_the_pod(
    cluster: Cluster, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("openssl"):
        pytest.skip("no openssl command to make a certificate with")
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=kubernetes"
    place = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make.split(), *place], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # not for the API server
    monkeypatch.setattr(api_module, "ACCOUNT", account)
    cluster.add(workload("Job", "lingoss-sft-1", "sft"))
    with serving(cluster, context) as port:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(port))
        shutil.copy(certificate, account / "ca.crt")
        assert found(in_cluster()) == [("Job", "lingoss-sft-1", "sft", "queued or starting")]
        (account / "ca.crt").write_text("no certificate")
        with pytest.raises(LingossError, match=r"ca\.crt holds no certificate"):
            found(in_cluster())
        subprocess.run([*make.split(), *place[:-1], str(account / "ca.crt")], check=True, capture_output=True)
        with pytest.raises(LingossError, match=r"its certificate is not trusted by .*ca\.crt"):
            found(in_cluster())
