# SPDX-License-Identifier: MIT-0
"""GRPO on a mixture of experts: tiny random weights, the true gpt-oss vocabulary and Harmony template, experts' LoRA."""

from pathlib import Path
from typing import Any

import pytest

from grpo_helpers import EvenScorer, tiny_grpo, trained_root
from lingoss import runs
from lingoss.grpo import run
from test_sft_run import Crash, adapter, crash_at, equal

pytestmark = pytest.mark.slow

HARMONY = {"format": "harmony", "template": "gpt-oss"}


def test_a_killed_run_ends_as_an_undisturbed_one(
    tiny_gpt_oss: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lingoss.grpo.trainer import Trainer

    monkeypatch.setattr("lingoss.grpo.stage.Scorer", EvenScorer)
    sft = {"data": {"examples_per_language": 1}, "lora": {"rank": 2, "experts": True}}
    root = trained_root(tiny_gpt_oss, tmp_path, global_batch=2, per_device_batch=1, **sft, **HARMONY)
    small = {"prompts_per_step": 2, "max_completion_length": 6, "max_steps": 3, "beta": 0.05, **HARMONY}

    prompts: list[str] = []
    original = Trainer._roll_out

    def spied(self: Any, *args: Any) -> Any:
        found = original(self, *args)
        prompts.append(self._tokenizer.decode(found["prompt_ids"][0]))
        return found

    monkeypatch.setattr(Trainer, "_roll_out", spied)
    undisturbed = run(tiny_grpo(root, run="undisturbed", **small))
    # The pinned template, not TRL's: a fixed date, and our instruction in the developer message.
    assert "Current date: 2025-08-05" in prompts[0]
    assert prompts[0].endswith("<|start|>assistant")
    assert "Reasoning language" in prompts[0]
    tensors = adapter(undisturbed)
    assert len(tensors) == 2 * (4 + 2) * 2
    start = adapter(runs.find_run(root, "latest:sft"))
    moved = {name for name, tensor in tensors.items() if not tensor.equal(start[name])}
    assert moved == tensors.keys()
    row = list(runs.read_metrics(undisturbed.path))[-1]
    assert row["kl"] > 0  # against the SFT policy, which the policy has left
    assert row["importance_ratio/max"] == pytest.approx(1, abs=1e-3)

    log = Trainer.log

    def crash(self: Any, logs: dict[str, float], *args: Any) -> None:
        if "loss" in logs:
            crash_at(2)(self.state.global_step)
        log(self, logs, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "log", crash)
        with pytest.raises(Crash):
            run(tiny_grpo(root, run="killed", **small))
    assert equal(adapter(run(tiny_grpo(root, run="killed", **small))), tensors)
