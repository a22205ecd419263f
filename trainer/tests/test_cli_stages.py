# SPDX-License-Identifier: MIT-0
"""The stages on the command line: their parts, and the exit status when trying again is worth it."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from lingoss.cli import main, stages
from lingoss.errors import TemporaryError


def test_the_parts_that_help_tells_are_those_of_the_modules() -> None:
    expected = {
        stage: getattr(importlib.import_module(module), "PARTS", {}) for stage, (module, *_) in stages.STAGES.items()
    }
    assert {stage: stages._parts(module) for stage, (module, *_) in stages.STAGES.items()} == expected
    assert [stage for stage, parts in expected.items() if parts] == ["prepare", "grpo", "evaluate"]
    assert list(expected["prepare"]) == ["fetch", "convert"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["prepare"], {}),
        (["prepare", "--part", "fetch"], {"part": "fetch"}),
        (["evaluate", "--part", "report", "--wait", "1.5"], {"part": "report", "wait": 1.5}),
        (["sft"], {}),
        (["grpo", "--part", "rollout"], {"part": "rollout"}),
    ],
)
def test_part_and_wait_reach_the_stage(
    arguments: list[str], expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    module = importlib.import_module(stages.STAGES[arguments[0]][0])
    monkeypatch.setattr(module, "run", lambda config, **options: seen.append(options))
    assert main([*arguments, "--set", f"root={tmp_path}"]) == 0
    assert seen == [expected]


@pytest.mark.parametrize(
    "arguments",
    [
        ["prepare", "--part", "report"],
        ["sft", "--part", "fetch"],
        ["prepare", "--wait", "1"],
        ["evaluate", "--wait", "-1"],
        ["evaluate", "--wait", "nan"],
    ],
)
def test_other_parts_and_waits_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: lingoss" in capsys.readouterr().err


def test_help_says_what_a_part_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["prepare", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "only a part of the stage. fetch: bring what comes over the network" in printed


def test_what_may_work_in_a_moment_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> None:
        raise TemporaryError("the network is away")

    monkeypatch.setattr(importlib.import_module(stages.STAGES["prepare"][0]), "run", run)
    assert main(["prepare", "--set", f"root={tmp_path}"]) == 1
    assert capsys.readouterr().err == "lingoss prepare: the network is away\n"


def test_a_stage_tells_what_runs_and_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ended:
        done = True

        def done_record(self) -> dict[str, str]:
            return records.pop(0)

    records = [{"gate": "viable"}, {"gate": "viable", "accept": "keep"}, {"gate": "saturated"}]
    for stage in ("prepare", "sft", "evaluate"):
        module = importlib.import_module(stages.STAGES[stage][0])
        monkeypatch.setattr(module, "run", lambda *_, **__: Ended())

    def told(*arguments: str) -> list[str]:
        assert main([*arguments, "--set", f"root={tmp_path}"]) == 0
        return capsys.readouterr().out.splitlines()

    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    lines = told("prepare")
    assert lines[0] == f"lingoss prepare: {stages.STAGES['prepare'][1]}"
    assert lines[-1] == f"next: lingoss sft --set root={tmp_path}"
    assert [told("evaluate", "--part", "report")[-1].split()[2] for _ in range(3)] == ["grpo", "serve", "serve"]
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert told("sft")[-1].endswith("charts/lingoss --reset-then-reuse-values --set global.stage=evaluate")
    assert not any(line.startswith("next") for line in told("evaluate", "--part", "generate"))
    monkeypatch.setenv("RANK", "1")
    assert told("sft") == []
    monkeypatch.setattr(Ended, "done", False)
    monkeypatch.setenv("RANK", "0")
    assert not any(line.startswith("next") for line in told("sft"))
