# SPDX-License-Identifier: MIT-0
"""The adapter is merged while completions are drawn, says the same as beside the base, and leaves no trace in it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lingoss.grpo.weights import merged
from lingoss.models import load_model


@pytest.fixture
def adapted(tiny_llama: Path) -> Any:
    """A tiny Llama with a random adapter on attention."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    model: Any = get_peft_model(load_model(tiny_llama), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.5)
    return model.eval()


def test_a_merged_adapter_says_the_same_and_leaves_the_base_bit_for_bit(adapted: Any) -> None:
    ids = torch.arange(3, 11)[None]
    before = {name: weight.clone() for name, weight in adapted.state_dict().items()}
    with torch.no_grad():
        beside = adapted(ids).logits
        with adapted.disable_adapter():
            base = adapted(ids).logits
        with merged(adapted):
            layers = [module for module in adapted.modules() if hasattr(module, "merged") and hasattr(module, "lora_A")]
            assert len(layers) == 4
            assert all(layer.merged for layer in layers)
            inside = adapted(ids).logits
    assert torch.allclose(inside, beside, atol=1e-4)
    assert not torch.allclose(inside, base, atol=1e-1)
    assert not any(layer.merged for layer in layers)
    after = adapted.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_the_adapter_is_taken_out_also_after_an_error(adapted: Any) -> None:
    with pytest.raises(RuntimeError), merged(adapted):
        raise RuntimeError
    assert not any(getattr(module, "merged", False) for module in adapted.modules())


def test_a_model_without_an_adapter_stays_as_it_is(tiny_llama: Path) -> None:
    model: Any = load_model(tiny_llama)
    with merged(model):
        assert not hasattr(model, "merge_adapter")


def test_stacks_of_experts_are_not_merged(tiny_gpt_oss: Path) -> None:
    """They are most of the model, too much to copy, and adding and subtracting rounds."""
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(r=2, target_modules=["q_proj"], target_parameters=["mlp.experts.down_proj"])
    model: Any = get_peft_model(load_model(tiny_gpt_oss), lora)
    with merged(model):
        assert not any(getattr(module, "merged", False) for module in model.modules())
