# SPDX-License-Identifier: MIT-0
"""The shapes that an adapter must have, told from the base's headers alone, against what PEFT really makes."""

from pathlib import Path

import pytest

from lingoss.checkpoints import base_shapes, check_tensors, lora_checkpoint_size, lora_shapes, save_adapter
from lingoss.checkpoints.adapter import EXPERTS
from lingoss.errors import LingossError
from lingoss.models import load_model

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


@pytest.mark.parametrize("modules", [ATTENTION, ("gate_proj", "down_proj"), ("q_proj",)])
def test_shapes_are_those_of_peft(tiny_llama: Path, modules: tuple[str, ...]) -> None:
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

    model = get_peft_model(load_model(tiny_llama), LoraConfig(r=4, target_modules=list(modules), task_type="CAUSAL_LM"))
    made = {name: tuple(tensor.shape) for name, tensor in get_peft_model_state_dict(model).items()}
    assert lora_shapes(base_shapes(tiny_llama), 4, modules) == made


def test_shapes_on_experts_are_those_of_peft(tiny_gpt_oss: Path) -> None:
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

    config = LoraConfig(r=4, target_modules=list(ATTENTION), target_parameters=list(EXPERTS), task_type="CAUSAL_LM")
    model = get_peft_model(load_model(tiny_gpt_oss), config)
    made = {name: tuple(tensor.shape) for name, tensor in get_peft_model_state_dict(model).items()}
    assert lora_shapes(base_shapes(tiny_gpt_oss), 4, ATTENTION, experts=True) == made


def test_a_layer_that_is_not_there_is_named_with_those_that_are(tiny_llama: Path) -> None:
    with pytest.raises(
        LingossError, match=r"c_attn.*it has down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj"
    ):
        lora_shapes(base_shapes(tiny_llama), 4, ["c_attn"])


def test_experts_of_a_dense_model_are_refused(tiny_llama: Path) -> None:
    with pytest.raises(LingossError, match=r"the model has no experts: set lora.experts=false"):
        lora_shapes(base_shapes(tiny_llama), 4, ATTENTION, experts=True)


def test_size_is_told_before_training() -> None:
    size = lora_checkpoint_size({"a": (1000, 100), "b": (100, 1000)})
    assert size.parameters == 200_000
    assert 2_400_000 < size.checkpoint < 3_000_000  # weights and two moments, four bytes each
    # The oldest goes before the next is written, but the newest stays until that one is whole.
    assert [size.needed(keep) - 2 * size.adapter for keep in (1, 2, 5)] == [
        2 * size.checkpoint,
        2 * size.checkpoint,
        5 * size.checkpoint,
    ]


def test_an_adapter_of_other_shape_is_not_written(tmp_path: Path) -> None:
    import torch

    target = tmp_path / "adapter"
    with pytest.raises(LingossError, match=r"x has shape \[2, 3\] instead of \[3, 2\]"):
        save_adapter(target, {"x": torch.zeros(2, 3)}, {}, {"x": (3, 2)})
    with pytest.raises(LingossError, match="x is not finite"):
        save_adapter(target, {"x": torch.full((3, 2), torch.inf)}, {}, {"x": (3, 2)})
    assert list(tmp_path.iterdir()) == []
    save_adapter(target, {"x": torch.ones(3, 2)}, {"target_modules": {"b", "a"}}, {"x": (3, 2)})
    assert (target / "adapter_config.json").read_text() == '{\n  "target_modules": [\n    "a",\n    "b"\n  ]\n}\n'
    check_tensors(target / "adapter_model.safetensors", {"x": (3, 2)})
    with pytest.raises(LingossError, match="lacks 1 of 2 tensors, first y"):
        check_tensors(target / "adapter_model.safetensors", {"x": (3, 2), "y": (1,)})
    with pytest.raises(LingossError, match="holds 1 tensors too many, first x"):
        check_tensors(target / "adapter_model.safetensors", {})
