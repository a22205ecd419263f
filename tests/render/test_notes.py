# SPDX-License-Identifier: MIT-0
"""What NOTES.txt warns of and says only sometimes; golden/notes shows the whole."""

import re
from typing import Any

import charts
import pytest

DIGEST = f"sha256:{'d' * 64}"
PLACED = {f"global.images.{name}.registry": "registry.example" for name in ("trainer", "toolbox", "openrlhf")}


def notes(stage: str, more: dict[str, Any] | None = None, layout: str = charts.BASE) -> str:
    return charts.notes(layout, {"global.stage": stage, **(more or {})})


def warnings(text: str) -> str:
    """The text above the line of the stage, as one line."""
    return " ".join(text.partition("\nStage ")[0].split()) if "WARNING" in text else ""


@pytest.mark.parametrize(
    ("stage", "given", "wanted"),
    [
        ("none", {}, ["toolbox"]),
        ("none", {"guard.enabled": False}, []),
        ("none", {"guard.enabled": False, "storage.shell.enabled": True}, ["toolbox"]),
        ("prepare", {"guard.enabled": False}, ["toolbox", "trainer"]),
        ("sft", {}, ["trainer", "toolbox"]),
        ("sft", {"global.images.toolbox.digest": DIGEST}, ["trainer"]),
        ("sft", {"global.images.trainer.registry": "registry.example"}, ["toolbox"]),
        ("grpo", {"guard.enabled": False, "grpo.engine": "openrlhf"}, ["openrlhf"]),
        ("grpo", {"guard.enabled": False}, ["trainer"]),
        ("serve", {"guard.enabled": False}, ["trainer"]),
        ("evaluate", PLACED, []),
    ],
)
def test_images_that_no_registry_is_named_for_are_warned_of(
    stage: str, given: dict[str, Any], wanted: list[str]
) -> None:
    said = warnings(notes(stage, given))
    found = re.search(r"the nodes would look for images? (.*) at their default registry: set global\.images\.", said)
    assert (found[1].split(" and ") if found else []) == [f"lingoss/{name}" for name in wanted]
    assert ("-f values/images.yaml" in said) is bool(wanted)


@pytest.mark.parametrize(
    ("stage", "layout", "given", "wanted"),
    [
        ("sft", charts.BASE, {}, ""),
        ("sft", "local-cpu", {}, ""),
        ("grpo", charts.BASE, {}, "in one process, and 4 are started: --set grpo.nodes=1,grpo.processesPerNode=1"),
        ("grpo", charts.BASE, {"grpo.processesPerNode": 1}, ""),
        ("grpo", charts.BASE, {"grpo.engine": "openrlhf"}, ""),
        ("evaluate", charts.BASE, {"grpo.engine": "openrlhf"}, ""),
    ],
)
def test_what_this_version_cannot_do_yet_is_warned_of(
    stage: str, layout: str, given: dict[str, Any], wanted: str
) -> None:
    said = warnings(notes(stage, {**PLACED, "inference.serve.apiKey.secretName": "key", **given}, layout))
    assert wanted in said
    assert bool(said) is bool(wanted)


@pytest.mark.parametrize("stage", ["prepare", "sft", "grpo", "evaluate", "serve"])
def test_a_queue_says_why_something_waits(stage: str) -> None:
    queued, plain = notes(stage, {"global.queue.name": "q"}), notes(stage)
    line = "kubectl --namespace lingoss describe workloads.kueue.x-k8s.io     # waits in the queue: why"
    assert (line in queued, line in plain) == (True, False)
    alone = "A Kueue that manages jobs only does not queue this server: it takes its GPUs at once."
    assert (alone in queued, alone in plain) == (stage == "serve", False)


def test_the_log_of_the_conversion_comes_after_the_download() -> None:
    first, second = [line for line in notes("prepare").splitlines() if "logs --follow" in line]
    assert first.endswith("--container fetch")
    assert second.endswith("--container convert     # once fetch is done")


@pytest.mark.parametrize(("looks", "minutes"), [(270, 60), (12, 17), (1, 16)])
def test_how_long_the_server_may_take_to_start_is_told(looks: int, minutes: int) -> None:
    said = notes("serve", {"inference.serve.startupProbe.failureThreshold": looks})
    assert f"may take {minutes} minutes: no --wait, or one with --timeout {minutes}m." in said


@pytest.mark.parametrize(
    ("layout", "kinds"), [(charts.BASE, ["rayjob", "hyperpodpytorchjob"]), ("local-cpu", [])], ids=str
)
def test_the_way_out_of_a_failing_uninstall_deletes_what_can_be_there(layout: str, kinds: list[str]) -> None:
    said = notes("sft", layout=layout)
    lines = [line.split() for line in said.splitlines() if "--selector" in line and " delete " in line]
    deleted = [words[words.index("delete") + 1] for words in lines]
    own = "job,deployment,service,configmap,serviceaccount,role,rolebinding,networkpolicy,poddisruptionbudget"
    assert deleted == [own, *kinds]
    assert all("app.kubernetes.io/instance=lingoss" in words for words in lines)
    assert "If that fails: helm uninstall lingoss --namespace lingoss --no-hooks, and then" in said
    off = notes("sft", {"cleanup.enabled": False}, layout)
    assert "--no-hooks" not in off
    assert "After a refused or failed upgrade make that the stage that runs" in off
