# SPDX-License-Identifier: MIT-0
"""Our config as the Hydra overrides of veRL 0.9.1 (`verl/trainer/config/ppo_trainer.yaml`), each with its reason.

Nothing here loads torch. The tests let the released package compose every list of overrides, which refuses unknown
keys, and put some through its own `validate_config`, which refuses bad values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo.ray.engine import python
from lingoss.grpo.ray.layout import Layout, require_shares, require_tensor_parallel

MODULE = "verl.trainer.main_ppo"
RETENTION = "lingoss.grpo.verl.retention.Retention"

_PLAIN = re.compile(r"[\w./-]+")


@dataclass(frozen=True, slots=True)
class Paths:
    """What veRL reads and writes."""

    model: Path
    tokenizer: Path
    adapter: Path | None
    prompts: Path
    validation: Path
    reward: Path
    manager: Path
    checkpoints: Path


@dataclass(frozen=True, slots=True)
class Adapter:
    """What vLLM must know of a LoRA adapter before it sees one."""

    rank: int
    alpha: int
    modules: Sequence[str]


def require(config: GrpoConfig, layout: Layout) -> None:
    """Refuse what veRL would refuse late or do otherwise than asked.

    Raises:
        LingossError: says what to set.
    """
    if config.optimizer.schedule == "linear":
        raise LingossError(
            "engine verl knows the schedules constant and cosine, not linear: set optimizer.schedule=constant or cosine"
        )
    if config.dtype != "bfloat16":
        raise LingossError(
            f"engine verl computes in bfloat16 (weights and optimizer stay float32), not {config.dtype}: "
            "set dtype=bfloat16"
        )
    require_tensor_parallel(config, layout)
    # veRL cuts each GPU's share into micro batches itself, the last one smaller.
    require_shares(config, layout.gpus, 1)


def command(
    config: GrpoConfig, layout: Layout, paths: Paths, lengths: tuple[int, int], adapter: Adapter | None
) -> list[str]:
    """The command line. `lengths` in tokens: of the longest prompt, and of a completion."""
    return python("-m", MODULE, *overrides(config, layout, paths, lengths, adapter))


def overrides(
    config: GrpoConfig, layout: Layout, paths: Paths, lengths: tuple[int, int], adapter: Adapter | None
) -> list[str]:
    """The overrides alone, `key=value` in Hydra's grammar."""
    actor, rollout = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
    found: dict[str, Any] = {
        **_data(config, paths, lengths),
        **_algorithm(config, lengths[1]),
        **_model(config, paths, adapter),
        **{actor + name: value for name, value in _actor(config).items()},
        **{rollout + name: value for name, value in _rollout(config, lengths).items()},
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": config.per_device_batch,
        "actor_rollout_ref.ref.fsdp_config.offload_policy": config.verl.offload,
        **{f"trainer.{name}": value for name, value in _trainer(config, layout, paths).items()},
    }
    # Hydra keeps a copy of its configuration in the current folder, which is read-only in a pod.
    found |= {"hydra.run.dir": paths.checkpoints.with_name("hydra"), "hydra.output_subdir": None}
    if adapter is not None:
        # A frozen base in every checkpoint would be 4 bytes for each of its parameters. No key of the YAML, so added.
        found[f"+{actor}checkpoint.save_lora_only"] = True
    return [f"{key}={_value(value)}" for key, value in found.items()]


def _data(config: GrpoConfig, paths: Paths, lengths: tuple[int, int]) -> Mapping[str, Any]:
    return {
        "data.train_files": paths.prompts,
        "data.val_files": paths.validation,
        "data.train_batch_size": config.prompts_per_step,
        "data.max_prompt_length": lengths[0],
        "data.max_response_length": lengths[1],
        "data.truncation": "error",
        "data.filter_overlong_prompts": False,
        # The files hold the prompts of all steps in the order of our plan.
        "data.shuffle": False,
        "data.validation_shuffle": False,
        "data.dataloader_num_workers": 0,
        "data.seed": config.seed,
        "data.trust_remote_code": config.trust_remote_code,
        "reward.custom_reward_function.path": paths.reward,
        "reward.custom_reward_function.name": "compute_score",
        # veRL's own does not say which completions were cut.
        "reward.reward_manager.source": "importlib",
        "reward.reward_manager.name": "RewardManager",
        "reward.reward_manager.module.path": paths.manager,
    }


def _algorithm(config: GrpoConfig, completion: int) -> Mapping[str, Any]:
    scaled, corrected = config.loss_type == "dapo", config.importance_sampling.mode == "token_truncate"
    return {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": scaled,
        "algorithm.use_kl_in_reward": False,
        "algorithm.rollout_correction.rollout_is": "token" if corrected else None,
        "algorithm.rollout_correction.rollout_is_threshold": config.importance_sampling.threshold,
        "actor_rollout_ref.actor.loss_agg_mode": "token-mean" if scaled else "seq-mean-token-sum-norm",
        "actor_rollout_ref.actor.loss_scale_factor": None if scaled else completion,
    }


def _model(config: GrpoConfig, paths: Paths, adapter: Adapter | None) -> Mapping[str, Any]:
    model = "actor_rollout_ref.model."
    found = {
        f"{model}path": paths.model,
        f"{model}tokenizer_path": paths.tokenizer,  # with our template: veRL renders the prompts itself
        f"{model}trust_remote_code": config.trust_remote_code,
        f"{model}enable_gradient_checkpointing": config.gradient_checkpointing,
        # Packed sequences need flash-attn, which the trainer image does not have; without it sequences would attend
        # to each other.
        f"{model}use_remove_padding": False,
        f"+{model}override_config.attn_implementation": "sdpa",
    }
    if adapter is not None:
        found |= {
            f"{model}lora_adapter_path": paths.adapter,
            f"{model}lora_rank": adapter.rank,
            f"{model}lora_alpha": adapter.alpha,
            f"{model}target_modules": list(adapter.modules),
        }
    return found


def _actor(config: GrpoConfig) -> Mapping[str, Any]:
    optimizer = config.optimizer
    return {
        "strategy": "fsdp2",
        "ppo_mini_batch_size": config.prompts_per_step,  # in prompts: one update for each draw of completions
        "ppo_micro_batch_size_per_gpu": config.per_device_batch,
        "ppo_epochs": 1,
        "use_kl_loss": config.beta > 0,
        "kl_loss_coef": config.beta,
        "kl_loss_type": "low_var_kl",
        "entropy_coeff": 0,
        "grad_clip": optimizer.max_grad_norm,
        "optim.lr": config.learning_rate,
        "optim.lr_scheduler_type": optimizer.schedule,
        "optim.lr_warmup_steps_ratio": optimizer.warmup_ratio,
        "optim.weight_decay": optimizer.weight_decay,
        "optim.clip_grad": optimizer.max_grad_norm,
        "fsdp_config.model_dtype": "fp32",  # in bfloat16 updates of this size would be rounded away
        "fsdp_config.offload_policy": config.verl.offload,
        "fsdp_config.seed": config.seed,
        "checkpoint.save_contents": ["model", "optimizer", "extra"],
    }


def _rollout(config: GrpoConfig, lengths: tuple[int, int]) -> Mapping[str, Any]:
    return {
        "name": "vllm",
        "mode": "async",
        "n": config.num_generations,
        "temperature": config.sampling.temperature,
        "top_p": config.sampling.top_p,
        "top_k": -1,  # vLLM's word for no filter
        "seed": config.seed,
        "dtype": "bfloat16",
        "tensor_model_parallel_size": config.rollout.tensor_parallel,
        "gpu_memory_utilization": config.rollout.gpu_memory_share,
        "max_model_len": sum(lengths),
        "load_format": "safetensors",  # a LoRA adapter is sent alone, so vLLM must have the base
        "calculate_log_probs": True,
        "log_prob_micro_batch_size_per_gpu": config.per_device_batch,
        "val_kwargs.n": 1,
        "val_kwargs.do_sample": False,
        "val_kwargs.temperature": 0,
    }


def _trainer(config: GrpoConfig, layout: Layout, paths: Paths) -> Mapping[str, Any]:
    tracker = config.logging.report_to
    return {
        "nnodes": layout.trainer_nodes + layout.rollout_nodes,
        "n_gpus_per_node": layout.gpus_per_node,
        "device": "cuda",
        "use_v1": True,
        "v1.trainer_mode": "sync",
        "total_epochs": 1,
        "total_training_steps": config.max_steps,
        "save_freq": config.checkpoint.save_steps,
        "test_freq": config.validation.steps,
        "val_before_train": True,
        # Its default sends everything to wandb.
        "logger": ["console", "file", *([] if tracker == "none" else [tracker])],
        "project_name": "lingoss",
        "experiment_name": "grpo",
        "default_local_dir": paths.checkpoints,
        "default_hdfs_dir": None,
        "resume_mode": "auto",
        # veRL forgets at a restart which checkpoints it has written (verl#7395), so `RETENTION` deletes as well.
        "max_actor_ckpt_to_keep": kept(config),
        "checkpoint_callback_class": RETENTION,
    }


def kept(config: GrpoConfig) -> int:
    """Checkpoints on the disk at once, the one that is being written among them."""
    return config.checkpoint.keep + 1


def _value(value: Any) -> str:
    """A value in Hydra's grammar (`hydra/grammar/OverrideParser.g4`): quoted unless it is one plain word."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ",".join(_value(item) for item in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
