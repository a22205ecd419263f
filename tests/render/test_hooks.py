# SPDX-License-Identifier: MIT-0
"""The hooks: which stand in which revision, what they look at, and what may not hold them up."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import charts
import pytest

from cases import KINDS, MATRIX, Case, each, everywhere

ALL_KINDS = ["Job", "RayJob", "HyperPodPyTorchJob"]
CHECK = charts.CHART / "files" / "check.py"


def hooks(manifests: list[charts.Manifest]) -> dict[str, charts.Manifest]:
    """The jobs and pods of hooks by the end of their names: guard, guard-volume, cleanup, test."""
    found = [one for one in charts.of_kind(manifests, "Job", "Pod") if charts.is_hook(one)]
    return {one["metadata"]["name"].removeprefix("lingoss-"): one for one in found}


def command(hook: charts.Manifest) -> list[str]:
    ((container,),) = [pod.spec["containers"] for pod in charts.pods([hook])]
    return [str(word) for word in container["command"]]


def kinds(hook: charts.Manifest) -> list[str]:
    """The words after --kinds, up to the next flag."""
    words = command(hook)
    rest = words[words.index("--kinds") + 1 :]
    return rest[: next((place for place, word in enumerate(rest) if word.startswith("--")), len(rest))]


@everywhere
def test_only_an_upgrade_has_the_cleanup(case: Case) -> None:
    """`helm template | kubectl apply` must not bring a job that deletes the running one; Helm forgets nothing before."""
    first = [charts.identifier(one) for one in case.manifests(upgrade=False)]
    later = [charts.identifier(one) for one in case.manifests(upgrade=True)]
    more = {f"{kind}/lingoss-cleanup" for kind in ("ServiceAccount", "Role", "RoleBinding", "Job")}
    assert set(later) - set(first) == more
    assert set(first) <= set(later)


def test_values_that_were_stored_before_there_was_a_cleanup_render_without_it() -> None:
    case = Case("", charts.BASE, (("global.stage", "sft"),))
    found = hooks(case.manifests({"cleanup": None}))
    assert set(found) == {"guard", "guard-volume", "test"}
    assert "helm uninstall lingoss" in case.notes({"cleanup": None})


@pytest.mark.parametrize(
    ("layout", "given", "wanted"),
    [
        (charts.BASE, {}, ALL_KINDS),
        (charts.BASE, {"sft.runtime": "hyperpod", "grpo.engine": "verl"}, ALL_KINDS),
        (charts.BASE, {"global.layout.engines": ["trl"]}, ["Job", "HyperPodPyTorchJob"]),
        (charts.BASE, {"global.layout.instanceType": "g6e.12xlarge"}, ["Job", "RayJob"]),
        (charts.BASE, {"global.layout.instanceType": ""}, ["Job", "RayJob"]),
        ("local-cpu", {}, ["Job"]),
    ],
)
def test_hooks_look_at_the_kinds_that_the_layout_can_have(
    layout: str, given: dict[str, Any], wanted: list[str]
) -> None:
    """Whatever runtime and engine are chosen now: another may have been when what still runs was started."""
    manifests = Case("", layout, tuple(given.items())).manifests()
    found = hooks(manifests)
    assert kinds(found["guard"]) == kinds(found["cleanup"]) == wanted
    plurals = [f"{kind.lower()}s" for kind in wanted]
    for role in charts.of_kind(manifests, "Role"):
        held = [resource for rule in role["rules"] for resource in rule["resources"] if resource.endswith("jobs")]
        assert held == plurals, role["metadata"]["name"]


@everywhere
def test_every_kind_that_is_rendered_is_looked_at(case: Case) -> None:
    manifests = case.manifests()
    rendered = {one["kind"].replace("Pytorch", "PyTorch") for one in charts.run_once(manifests)}
    for name, hook in hooks(manifests).items():
        if name in ("guard", "cleanup"):
            assert rendered <= set(kinds(hook)), name


@each(KINDS)
def test_what_the_guard_says_is_shown_whatever_it_decides(case: Case) -> None:
    for name, hook in hooks(case.manifests()).items():
        if name.startswith("guard"):
            said = hook["metadata"]["annotations"]["helm.sh/hook-output-log-policy"]
            assert said == "hook-succeeded,hook-failed", name


@each(KINDS)
def test_a_container_for_all_pods_stays_out_of_those_that_helm_waits_for(case: Case) -> None:
    more = {"global.pod.containers": [{"name": "endless", "image": "example.org/endless:1"}]}
    for pod in case.pods(more):
        names = [container["name"] for container in pod.spec["containers"]]
        assert ("endless" in names) is not charts.is_hook(pod.owner), pod.name


def test_a_container_for_the_guard_alone_is_taken() -> None:
    own = {"guard.pod.containers": [{"name": "own", "image": "example.org/own:1"}]}
    found = charts.pods([hooks(Case("", charts.BASE, ()).manifests(own))["guard"]])
    assert [container["name"] for container in found[0].spec["containers"]] == ["guard", "own"]


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def health() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/health"
        server.shutdown()
        thread.join()


def test_the_test_pod_asks_the_server_without_a_proxy(health: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    script: dict[str, Any] = {"__name__": "check"}
    exec(compile(CHECK.read_text(), CHECK, "exec"), script)
    script["LIMIT"] = 0.0
    assert script["answers"](health) is None


@each([case for case in MATRIX if case.stage == "sft"])
def test_the_policies_of_training_stand_in_every_stage(case: Case) -> None:
    """A stage that was left by force may still save, and its pods still need each other."""
    names = {"lingoss-sft", "lingoss-grpo"} | ({"lingoss-ray-head"} if case.layout != "local-cpu" else set())
    policies = {
        stage: {
            one["metadata"]["name"]: one["spec"]
            for one in charts.of_kind(case.manifests({"global.stage": stage}), "NetworkPolicy")
            if one["metadata"]["name"] in names
        }
        for stage in ("none", "prepare", "sft", "evaluate", "serve")
    }
    assert set(policies["sft"]) == names
    assert all(found == policies["sft"] for found in policies.values())
