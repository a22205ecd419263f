# SPDX-License-Identifier: MIT-0
"""The settings of TRL's GRPOTrainer (trl 1.16), each with its reason. Nothing here loads torch, so all is tested."""

import math
from collections.abc import Sequence
from typing import Any

from lingoss.config import GrpoConfig

VLLM_LOGPROBS = "processed_logprobs"
"""The log-probabilities that were sampled by: after the temperature. TRL asks a colocated engine for the same."""

_MOST_SEQUENCES = 512  # above that a step of the 20B shape takes as much longer as it gives more

ENVIRONMENT = {
    "TRL_EXPERIMENTAL_SILENCE": "1",  # we hand over `rollout_func`, and know that it is experimental
    "VLLM_NO_USAGE_STATS": "1",
}


def arguments(
    config: GrpoConfig, output: str, completion_length: int, model_length: int, stop_ids: Sequence[int], cuda: bool
) -> dict[str, Any]:
    """Keyword arguments of `GRPOConfig`. Lengths in tokens: of a completion, and of the longest prompt with one.
    `output` is where TRL may write."""
    optimizer, batch = config.optimizer, config.per_device_batch
    micro_batches = config.prompts_per_step * config.num_generations // batch
    found: dict[str, Any] = {
        "output_dir": output,
        "max_steps": config.max_steps,
        "seed": config.seed,
        "use_cpu": not cuda,
        "bf16": config.dtype == "bfloat16",
        "gradient_checkpointing": config.gradient_checkpointing,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "dataloader_pin_memory": cuda,
        # One draw of completions makes one optimizer step, so the policy that is trained is the one that drew.
        "per_device_train_batch_size": batch,
        "gradient_accumulation_steps": micro_batches,
        "steps_per_generation": micro_batches,
        "num_iterations": 1,
        "num_generations": config.num_generations,
        "max_completion_length": completion_length,
        "temperature": config.sampling.temperature,
        "top_p": config.sampling.top_p,
        "top_k": config.sampling.top_k,
        "min_p": config.sampling.min_p,
        "loss_type": config.loss_type,
        # Dr. GRPO (arXiv 2503.20783): dividing by a group's deviation favours questions that are nearly solved or
        # nearly hopeless. DAPO keeps GRPO's division.
        "scale_rewards": "none" if config.loss_type == "dr_grpo" else "group",
        "beta": config.beta,
        "mask_truncated_completions": config.mask_truncated_completions,
        # The trainer corrects token by token inside the loss, where its own log-probabilities are at hand; TRL would
        # compute them once more beforehand, and not at all without vLLM.
        "vllm_importance_sampling_correction": False,
        "disable_dropout": True,  # the rollout has none, and both must mean the same policy
        "router_aux_loss_coef": 0.0,  # else a mixture of experts trains its router even when nothing was rewarded
        "shuffle_dataset": False,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if optimizer.schedule == "constant" else optimizer.schedule,
        "warmup_steps": math.ceil(optimizer.warmup_ratio * config.max_steps),
        "weight_decay": optimizer.weight_decay,
        "max_grad_norm": optimizer.max_grad_norm,
        "save_strategy": "steps",
        "save_steps": config.checkpoint.save_steps,
        "logging_strategy": "steps",
        "logging_steps": 1,  # the safety stops look at every step
        "logging_nan_inf_filter": False,  # it would hide what must stop the run
        "report_to": config.logging.report_to,
        "disable_tqdm": True,
        "push_to_hub": False,
    }
    if config.rollout.mode != "transformers":
        found |= vllm_arguments(config, model_length, stop_ids)
    return found


def vllm_arguments(config: GrpoConfig, model_length: int, stop_ids: Sequence[int]) -> dict[str, Any]:
    """The part about vLLM. `model_length`: tokens of the longest prompt and a whole completion."""
    rollout = config.rollout
    found: dict[str, Any] = {
        "use_vllm": True,
        "vllm_mode": rollout.mode,
        "vllm_max_model_length": model_length,
        "generation_kwargs": {"stop_token_ids": list(stop_ids)},
    }
    if rollout.mode == "server":
        return found | {
            "vllm_server_base_url": rollout.server_url,
            "vllm_server_timeout": rollout.server_timeout,  # TRL's 240 s end before a 40 GB model is loaded
        }
    return found | {
        "vllm_gpu_memory_utilization": rollout.gpu_memory_share,
        "vllm_tensor_parallel_size": rollout.tensor_parallel,
        # Only ids and their log-probabilities are read. Text for every token is most of what the CPU would do: on an
        # H200 256 sequences of the 20B shape came at 10,900 tokens/s with it and at 18,200 without.
        "generation_kwargs": {**found["generation_kwargs"], "detokenize": False, "flat_logprobs": True},
    }


def engine_arguments(config: GrpoConfig, experts: bool, sequences: int) -> dict[str, Any]:
    """Keyword arguments of a colocated `vllm.LLM` (vllm 0.26) that TRL has no setting for, or sets too low.

    `experts`: the model is a mixture of experts. Backends other than Triton rearrange expert weights when they load
    them, and take new ones in the wrong order (vllm#39545, #42821). `sequences`: the most that are asked for at once.
    TRL would allow no more than one step's, so a validation slice would be drawn in turns.
    """
    found: dict[str, Any] = {"dtype": config.dtype, "max_num_seqs": min(sequences, _MOST_SEQUENCES)}
    return found | ({"moe_backend": "triton"} if experts else {})
