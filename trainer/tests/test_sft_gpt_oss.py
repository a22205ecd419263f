# SPDX-License-Identifier: MIT-0
"""The same code on a mixture of experts: tiny random weights, the true gpt-oss vocabulary and Harmony template."""

from pathlib import Path
from typing import Any

import pytest

from conftest import prepared_root, tiny_sft
from lingoss.sft import run
from test_sft_run import Crash, adapter, crash_at, equal

pytestmark = pytest.mark.slow


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "format": "harmony",
        "template": "gpt-oss",
        "data": {"examples_per_language": 1},
        "global_batch": 2,
        "per_device_batch": 1,
        "max_steps": 4,
        "lora": {"rank": 2, "experts": True},
        **changes,
    }


def test_a_killed_run_ends_as_an_undisturbed_one(
    tiny_gpt_oss: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepared_root(tiny_gpt_oss, tmp_path)
    undisturbed = run(tiny_sft(root, **settings(run="undisturbed")))
    assert undisturbed.done_record()["lineage"]["base"]["hub_id"] == "lingoss-tests/tiny-gpt-oss"
    tensors = adapter(undisturbed)
    # attention and both stacks of experts in each of two layers, two matrices each
    assert len(tensors) == 2 * (4 + 2) * 2
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items() if "layers.0.mlp" in name} == {
        "base_model.model.model.layers.0.mlp.experts.base_layer.lora_A.weight": (8, 32),
        "base_model.model.model.layers.0.mlp.experts.base_layer.lora_B.weight": (64, 8),
        "base_model.model.model.layers.0.mlp.experts.lora_A.weight": (8, 32),
        "base_model.model.model.layers.0.mlp.experts.lora_B.weight": (32, 8),
    }
    assert all(bool(tensor.abs().sum() > 0) for name, tensor in tensors.items() if "lora_B" in name)

    from lingoss.sft.trainer import Trainer

    original = Trainer.training_step

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        crash_at(3)(self.state.global_step)
        return original(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "training_step", step)
        with pytest.raises(Crash):
            run(tiny_sft(root, **settings(run="killed")))
    assert equal(adapter(run(tiny_sft(root, **settings(run="killed")))), tensors)
    other = adapter(run(tiny_sft(root, **settings(run="other seed", seed=1))))
    assert not equal(other, tensors)


def test_the_router_has_no_loss_of_its_own(tiny_gpt_oss: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its coefficient is 0.001 in the model's configuration, and TRL would use that one."""
    from lingoss.sft.trainer import Trainer

    seen = []
    original = Trainer.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        seen.append((self.aux_loss_enabled, self.router_aux_loss_coef, self.model.config.output_router_logits))

    monkeypatch.setattr(Trainer, "__init__", init)
    run(tiny_sft(prepared_root(tiny_gpt_oss, tmp_path), **settings(max_steps=1)))
    assert seen == [(False, 0.0, False)]
