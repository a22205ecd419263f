# SPDX-License-Identifier: MIT-0
"""Stage evaluate on a tiny random model: the base alone, then base and a trained adapter, from one root."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import prepared_root, tiny_sft
from lingoss import runs
from lingoss.config import EvaluateConfig
from lingoss.errors import LingossError
from lingoss.evaluate import run as evaluate

SHORT = {"max_completion_length": 8}


def config(root: Path, **changes: Any) -> EvaluateConfig:
    values = {
        "root": root,
        "prompts": {"sets": ["core"], "limit": 2},
        "generate": {"k": 1, "temperature": 0.0, "max_new_tokens": 8},
        "gate": {"prompts_per_language": 4, "k": 2, "waive_prompts": True, "informative_groups": 0} | SHORT,
        "bootstrap_draws": 200,
        "threads": 1,
    }
    return EvaluateConfig(**{**values, **changes})


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_base_then_adapter(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lingoss import sft

    root = prepared_root(tiny_llama, tmp_path)
    first = evaluate.run(config(root))
    gate = load(first.path / "gate.json")
    # A random model never keeps the form, so no group of two has two different rewards.
    assert gate["outcome"] == "sft-first"
    assert gate["runs"] == ["base"]
    assert sorted(gate["languages"]) == ["de", "en", "es", "fr", "it"]
    assert gate["languages"]["fr"]["informative"]["k"] == 0
    assert gate["languages"]["fr"]["informative"]["n"] == 4
    assert gate["languages"]["fr"]["success"] == {**gate["languages"]["fr"]["success"], "k": 0, "n": 8}
    assert first.done_record()["gate"] == "sft-first"
    assert runs.verify(first.path) == []
    summary = load(first.path / "summary.json")
    assert [one["run"] for one in summary] == ["base"]
    assert summary[0]["cells"]["all"]["all"]["prompts"] == 10
    assert load(first.path / "compare.json") == []

    trained = sft.run(tiny_sft(root))
    second = evaluate.run(config(root))
    assert second.name != first.name
    assert load(second.path / "gate.json")["runs"][0] == trained.name
    assert [(one["before"], one["after"]) for one in load(second.path / "compare.json")] == [("base", trained.name)]
    page = (second.path / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert trained.name in page
    samples = sorted(path.name.rpartition("-")[0] for path in (root / "evaluations").iterdir())
    # core prompts and gate prompts of each model, and the folders of the two runs
    assert samples == ["base", "base", "evaluate", "evaluate", trained.name, trained.name]
    assert [(root / "runs" / one.name).readlink() for one in (first, second)] == [
        Path("..") / "evaluations" / one.name for one in (first, second)
    ]

    for work in ("_generate", "_report"):
        monkeypatch.setattr(evaluate, work, lambda *_: pytest.fail("evaluated again"))
    capsys.readouterr()
    assert evaluate.run(config(root)).name == second.name
    assert capsys.readouterr().out == f"{second.name} is done: {second.path / 'report.html'}\n"
    assert evaluate.plan(config(root))["state"] == "done"


def test_plan_counts_completions(tiny_llama: Path, tmp_path: Path) -> None:
    root = prepared_root(tiny_llama, tmp_path)
    found = evaluate.plan(config(root))
    assert found.pop("run").startswith("evaluate-")
    assert found == {
        "parent": runs.find_run(root, "latest:prepare").name,
        "state": "new",
        "models": ["base"],
        "prompts": 10,
        "gate_prompts": 20,
        "completions": 10 + 40,
        "most_new_tokens": 400,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": {"sets": ["heldout"]}}, "brought no prompt set heldout: it has core"),
        ({"prompts": {"sets": ["core"], "languages": ["ja"]}}, "no prompt is left|have no text in ja"),
        ({"runs": ["sft-1234"]}, "no run 'sft-1234'"),
        ({"runs": ["latest:sft"]}, "no finished run of stage 'sft'"),
        ({"runs": ["latest:prepare"]}, "holds no model: name base, or runs of sft or grpo"),
        ({"parent": "prepare-0"}, "no run 'prepare-0'|means"),
        ({"prompts": {"sets": [], "files": ["./nowhere.jsonl"]}}, "nowhere.jsonl"),
    ],
)
def test_refusals(change: dict, message: str, tiny_llama: Path, tmp_path: Path) -> None:
    with pytest.raises(LingossError, match=message):
        evaluate.run(config(prepared_root(tiny_llama, tmp_path), **change))
