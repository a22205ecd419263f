# SPDX-License-Identifier: MIT-0
"""The demo's own logic on a tiny random model; the real one takes ten minutes and is run by `make demo`."""

from pathlib import Path

import pytest

from lingoss import config, demo, runs
from lingoss.evaluate.sampling import differences, gate_sampling, grpo_sampling


@pytest.fixture
def tiny_demo(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PREPARE", {**demo.PREPARE, "model": {"source": str(tiny_llama)}})
    changes = {"data": {"examples_per_language": 2}, "max_steps": 2, "threads": 1}
    monkeypatch.setattr(demo, "SFT", {**demo.SFT, **changes})
    changes = {"threads": 1, "bootstrap_draws": 200, "prompts": {"sets": ["core-crossed"], "limit": 2}}
    changes |= {"generate": {**demo.EVALUATE["generate"], "max_new_tokens": 8}}
    short = {"max_completion_length": 8}
    changes |= {"gate": {**demo.EVALUATE["gate"], **short, "prompts_per_language": 1, "k": 2}}
    monkeypatch.setattr(demo, "EVALUATE", {**demo.EVALUATE, **changes})
    changes = {**short, "data": {"prompts_per_language": 2}, "max_steps": 2, "prompts_per_step": 2, "threads": 1}
    changes |= {"num_generations": 2, "per_device_batch": 2, "validation": {"steps": 1, "prompts_per_language": 1}}
    monkeypatch.setattr(demo, "GRPO", {**demo.GRPO, **changes})


@pytest.mark.parametrize("stage", ["prepare", "sft", "evaluate", "grpo"])
def test_the_demo_s_settings_are_valid(stage: str, tmp_path: Path) -> None:
    values = {"prepare": demo.PREPARE, "sft": demo.SFT, "evaluate": demo.EVALUATE, "grpo": demo.GRPO}[stage]
    found = config.stage_type(stage).model_validate({**values, "root": str(tmp_path)})
    if stage == "evaluate":  # what the issue of this demo promises: 20 prompts, 8 samples each
        assert found.gate.prompts_per_language * len(found.prompts.languages) == 20
        assert found.gate.k == 8


def test_the_demo_s_gate_draws_as_its_grpo_does(tmp_path: Path) -> None:
    asked = config.EvaluateConfig.model_validate({**demo.EVALUATE, "root": str(tmp_path)})
    trained = config.GrpoConfig.model_validate({**demo.GRPO, "root": str(tmp_path)})
    assert asked.gate.max_completion_length == trained.max_completion_length
    assert differences(gate_sampling(asked, demo.LONGEST), grpo_sampling(trained, demo.LONGEST)) == []


@pytest.mark.slow
def test_runs_all_stages_prints_the_table_and_goes_on(
    tiny_demo: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "demo"
    assert demo.run(folder) == 0
    printed = capsys.readouterr().out
    assert "| 10 crossed prompts, greedy | base | sft | grpo |" in printed
    assert "| all three (strict) | 0/10 (0 to " in printed
    assert demo.MODEL_NOTE in printed
    for step in ("from base to sft", "from sft to grpo"):
        assert f"Strict compliance {step}, paired: 0 prompts gained, 0 lost" in printed
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "135 million parameters" in page
    assert "the rule that eight groups of a step should be informative is waived" in page
    made = [run.name for run in runs.list_runs(folder)]
    stages = ["prepare", "evaluate", "sft", "evaluate", "grpo", "evaluate"]
    assert [name.split("-")[0] for name in made] == stages
    assert f"{made[2]} stays the answer; {made[4]} failed" in printed
    assert "No gain is shown on these prompts." in printed

    assert demo.run(folder) == 0  # the second start finds everything done
    assert [run.name for run in runs.list_runs(folder)] == made

    (folder / "mine.txt").write_text("keep me", encoding="utf-8")
    demo.clear(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
