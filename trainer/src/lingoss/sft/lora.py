# SPDX-License-Identifier: MIT-0
"""The adapter of a run as PEFT knows it, and as it is written at the end."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lingoss.checkpoints import save_adapter
from lingoss.checkpoints.adapter import EXPERTS
from lingoss.checkpoints.tensors import Shapes
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


def save_trained_adapter(model: Any, target: Path, hub_id: str, revision: str | None, expected: Shapes) -> None:
    """Write the adapter of `model`, naming its base as the hub does and not as a path of this machine.

    Raises:
        LingossError: its tensors are not the `expected` ones or not finite.
    """
    from peft import get_peft_model_state_dict

    weights = {name: tensor.detach().cpu() for name, tensor in get_peft_model_state_dict(model).items()}
    save_adapter(target, weights, adapter_config(model, hub_id, revision), expected)


def adapter_config(model: Any, hub_id: str, revision: str | None) -> dict[str, Any]:
    """PEFT's configuration of the trained adapter, naming its base as the hub does."""
    described: dict[str, Any] = model.peft_config["default"].to_dict()
    return described | {"base_model_name_or_path": hub_id, "revision": revision, "inference_mode": True}
