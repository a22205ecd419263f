# SPDX-License-Identifier: MIT-0
"""The demo's own logic on a tiny random model; the real one takes eight minutes and is run by `make demo`."""

from pathlib import Path

import pytest

from lingoss import config, demo, runs


@pytest.fixture
def tiny_demo(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PREPARE", {**demo.PREPARE, "model": {"source": str(tiny_llama)}})
    changes = {"data": {"examples_per_language": 2}, "max_steps": 2, "threads": 1}
    monkeypatch.setattr(demo, "SFT", {**demo.SFT, **changes})
    changes = {"threads": 1, "bootstrap_draws": 200, "prompts": {"sets": ["core-crossed"], "limit": 2}}
    changes |= {"generate": {**demo.EVALUATE["generate"], "max_new_tokens": 8}}
    changes |= {"gate": {**demo.EVALUATE["gate"], "prompts_per_language": 1, "k": 2}}
    monkeypatch.setattr(demo, "EVALUATE", {**demo.EVALUATE, **changes})


@pytest.mark.parametrize("stage", ["prepare", "sft", "evaluate"])
def test_the_demo_s_settings_are_valid(stage: str, tmp_path: Path) -> None:
    values = {"prepare": demo.PREPARE, "sft": demo.SFT, "evaluate": demo.EVALUATE}[stage]
    found = config.stage_type(stage).model_validate({**values, "root": str(tmp_path)})
    if stage == "evaluate":  # what the issue of this demo promises: 20 prompts, 8 samples each
        assert found.gate.prompts_per_language * len(found.prompts.languages) == 20
        assert found.gate.k == 8


@pytest.mark.slow
def test_runs_all_stages_prints_the_table_and_goes_on(
    tiny_demo: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "demo"
    assert demo.run(folder) == 0
    printed = capsys.readouterr().out
    assert "| 10 crossed prompts, greedy | base | sft |" in printed
    assert "| all three (strict) | 0/10 (0 to " in printed
    assert demo.MODEL_NOTE in printed
    assert "Strict compliance, paired: 0 prompts gained, 0 lost" in printed
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "135 million parameters" in page
    made = [run.name for run in runs.list_runs(folder)]
    assert [name.split("-")[0] for name in made] == ["prepare", "evaluate", "sft", "evaluate"]

    assert demo.run(folder) == 0  # the second start finds everything done
    assert [run.name for run in runs.list_runs(folder)] == made

    (folder / "mine.txt").write_text("keep me", encoding="utf-8")
    demo.clear(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
