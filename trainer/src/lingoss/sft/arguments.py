# SPDX-License-Identifier: MIT-0
"""The config of a run as TRL's arguments."""

import math
from pathlib import Path
from typing import Any

from lingoss.sft.parallel import fsdp_arguments
from lingoss.sft.setting import Setting, require_tracker
from lingoss.sft.share import Share


def arguments(setting: Setting, output: Path, share: Share, layout: str, cuda: bool) -> Any:
    """TRL's arguments for one rank; `output` is where the checkpoints go.

    Raises:
        LingossError: a tracker is asked for that is not installed.
    """
    from trl import SFTConfig

    config, optimizer = setting.config, setting.config.optimizer
    # Recomputing inside the shared-out unit spares gathering it twice, but accelerate 1.15 does not recompute the same
    # dropout (`fsdp2_apply_ac`, preserve_rng_state=False).
    inside = layout == "fsdp" and config.gradient_checkpointing and not config.lora.dropout
    require_tracker(config.logging.report_to)
    made = SFTConfig(
        output_dir=str(output),
        max_steps=setting.steps,
        per_device_train_batch_size=share.per_device,
        gradient_accumulation_steps=share.pieces,
        learning_rate=optimizer.learning_rate,
        lr_scheduler_type="constant_with_warmup" if optimizer.schedule == "constant" else optimizer.schedule,
        warmup_steps=math.ceil(optimizer.warmup_ratio * setting.steps),
        weight_decay=optimizer.weight_decay,
        max_grad_norm=optimizer.max_grad_norm,
        seed=config.seed,
        bf16=config.dtype == "bfloat16",
        use_cpu=not cuda,
        gradient_checkpointing=config.gradient_checkpointing and not inside,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        router_aux_loss_coef=config.router_aux_loss_coef,
        max_length=None,  # every row fits already, and TRL would drop what it truncates
        packing=False,
        save_strategy="steps",
        save_steps=config.checkpoint.save_steps,
        logging_strategy="steps",
        logging_steps=config.logging.log_steps,
        logging_nan_inf_filter=False,  # it would hide what must stop the run
        report_to=config.logging.report_to,
        disable_tqdm=True,
        log_level="error",
        log_level_replica="error",
        dataloader_pin_memory=cuda,
        push_to_hub=False,
        ddp_find_unused_parameters=False,  # every adapter is in every forward pass
        ddp_broadcast_buffers=False,  # the base is frozen and the same everywhere
        ddp_timeout=math.ceil(config.hang_seconds),
        **(fsdp_arguments(setting.base.model, inside) if layout == "fsdp" else {}),
    )
    if layout == "fsdp" and config.dtype == "bfloat16":
        import torch
        from torch.distributed.fsdp import MixedPrecisionPolicy

        # Gathered and computed in bfloat16, as without sharing; but what ranks add up is added in float32.
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        made.fsdp_plugin_args["mixed_precision_policy"] = policy
    return made
