# SPDX-License-Identifier: MIT-0
"""The adapter of a run as PEFT knows it, and as it is written at the end."""

from enum import Enum
from typing import TYPE_CHECKING, Any

from lingoss.checkpoints.adapter import EXPERTS
from lingoss.config import SftConfig

if TYPE_CHECKING:
    from peft import LoraConfig


def lora_config(config: SftConfig) -> "LoraConfig":
    """PEFT's configuration. gpt-oss keeps its experts as parameters, which only `target_parameters` reaches."""
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora.rank,
        lora_alpha=config.lora.alpha,  # type: ignore[arg-type]  # PEFT only divides by it
        lora_dropout=config.lora.dropout,
        target_modules=list(config.lora.target_modules),
        target_parameters=list(EXPERTS) if config.lora.experts else None,
        bias="none",
        task_type="CAUSAL_LM",
    )


def trained_weights(model: Any) -> dict[str, Any]:
    """The adapter's tensors by PEFT's names, whole and on the CPU. Where ranks share them out, every rank calls it."""
    from peft import get_peft_model_state_dict
    from torch.distributed.tensor import DTensor

    if not any(isinstance(weight, DTensor) for weight in model.parameters()):
        return {
            name: tensor.detach().cpu()
            for name, tensor in get_peft_model_state_dict(model, save_embedding_layers=False).items()
        }
    from lingoss.checkpoints.training import trained

    return {name: weight.detach().full_tensor().cpu() for name, weight in trained(model).items()}


def adapter_config(model: Any, hub_id: str, revision: str | None) -> dict[str, Any]:
    """PEFT's configuration of the trained adapter, naming its base as the hub does."""
    described: dict[str, Any] = model.peft_config["default"].to_dict()
    return described | {"base_model_name_or_path": hub_id, "revision": revision, "inference_mode": True}


def plain_config(described: dict[str, Any]) -> dict[str, Any]:
    """`adapter_config` as JSON values, for a checkpoint's documents."""
    return {
        key: sorted(value) if isinstance(value, set) else value.value if isinstance(value, Enum) else value
        for key, value in described.items()
    }
