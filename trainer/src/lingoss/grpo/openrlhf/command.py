# SPDX-License-Identifier: MIT-0
"""Our config as the command line of OpenRLHF 0.11.2 (`openrlhf/cli/train_ppo_ray.py`), each flag with its reason.

Nothing here loads torch; the tests give every command to the released parser and its own checks.
"""

from dataclasses import dataclass
from pathlib import Path

from lingoss.config import GrpoConfig
from lingoss.errors import LingossError
from lingoss.grpo.ray.engine import python
from lingoss.grpo.ray.layout import Layout, require_shares, require_tensor_parallel

MODULE = "openrlhf.cli.train_ppo_ray"
INPUT, LABEL = "input", "label"
"""Columns of the prompt files."""

_SCHEDULES = {"constant": "constant_with_warmup", "linear": "linear", "cosine": "cosine"}
_CLIP = ("0.2", "0.2")  # TRL's epsilon; with one update for each draw of completions nothing is clipped anyway


@dataclass(frozen=True, slots=True)
class Paths:
    """What OpenRLHF reads and writes."""

    model: Path
    prompts: Path
    validation: Path
    reward: Path
    checkpoints: Path
    export: Path


def require(config: GrpoConfig, layout: Layout) -> None:
    """Refuse what OpenRLHF would refuse late or do otherwise than asked.

    Raises:
        LingossError: says what to set.
    """
    if config.dtype != "bfloat16":
        raise LingossError(f"engine openrlhf trains in bfloat16, not {config.dtype}: set dtype=bfloat16")
    if config.rollout.mode == "server" and not layout.rollout_nodes:
        raise LingossError(
            "rollout.mode=server needs nodes of their own for vLLM, and the layout has none: set kuberay.rollout.nodes, "
            "or rollout.mode=colocate"
        )
    if config.rollout.mode != "server" and layout.rollout_nodes:
        raise LingossError(
            f"the layout has {layout.rollout_nodes} nodes for rollouts that rollout.mode={config.rollout.mode} would "
            "not use: set rollout.mode=server"
        )
    require_tensor_parallel(config, layout)
    require_shares(config, layout.trainer_gpus, config.per_device_batch)


def command(
    config: GrpoConfig, layout: Layout, paths: Paths, lengths: tuple[int, int], attention: str, experts: bool
) -> list[str]:
    """The command line. `lengths` in tokens: of the longest prompt with a whole completion, and of a completion."""
    longest, completion = lengths
    completions, batch = config.prompts_per_step * config.num_generations, str(config.per_device_batch)
    made = python("-m", MODULE, "--actor.model_name_or_path", str(paths.model), *_placement(config, layout))
    made += ["--ds.zero_stage", "3", "--ds.param_dtype", "bf16", "--ds.attn_implementation", attention]
    if config.openrlhf.offload_optimizer:
        made += ["--ds.adam_offload"]
    if experts:
        made += ["--ds.experts_implementation", "grouped_mm"]
    if config.gradient_checkpointing:
        made += ["--actor.gradient_checkpointing_enable"]
    # A step is one draw of completions and one update on all of them.
    made += ["--rollout.batch_size", str(config.prompts_per_step), "--rollout.micro_batch_size", batch]
    made += ["--rollout.n_samples_per_prompt", str(config.num_generations)]
    made += ["--rollout.max_new_tokens", str(completion), "--data.max_len", str(longest)]
    made += ["--rollout.temperature", str(config.sampling.temperature), "--rollout.top_p", str(config.sampling.top_p)]
    made += ["--train.batch_size", str(completions), "--train.micro_batch_size", batch]
    made += ["--train.num_episodes", "1", "--train.max_epochs", "1", "--train.seed", str(config.seed)]
    made += [*_algorithm(config), *_optimizer(config)]
    # The prompts are rendered already: OpenRLHF would use the model's own template.
    made += ["--data.prompt_dataset", str(paths.prompts), "--data.input_key", INPUT, "--data.label_key", LABEL]
    made += ["--reward.remote_url", str(paths.reward)]
    made += ["--eval.dataset", str(paths.validation), "--eval.steps", str(config.validation.steps)]
    made += ["--eval.n_samples_per_prompt", "1", "--eval.temperature", "0"]
    # It deletes before it writes, so of `max_num` one fewer is whole while the next is written. Exports by the way
    # (save_hf) are never deleted; there is one, at the end.
    made += ["--ckpt.path", str(paths.checkpoints), "--ckpt.output_dir", str(paths.export), "--ckpt.load_enable"]
    made += ["--ckpt.save_steps", str(config.checkpoint.save_steps), "--ckpt.max_num", str(kept(config))]
    made += ["--ckpt.best_metric_key", "none"]
    if config.logging.report_to == "tensorboard":
        made += ["--logger.tensorboard_dir", str(paths.checkpoints / "tensorboard")]
    return made


def kept(config: GrpoConfig) -> int:
    """Checkpoints on the disk at once, the one that is being written among them."""
    return config.checkpoint.keep + 1


def asked_gpus(command: list[str]) -> int:
    """GPUs for which OpenRLHF makes placement groups (`train` in its `train_ppo_ray.py`).

    Training takes num_nodes x num_gpus_per_node, vLLM num_engines x tensor_parallel_size beside them, unless all are
    colocated. A reference model shares the GPUs of training.
    """

    def number(flag: str) -> int:
        return int(command[command.index(flag) + 1])

    training = number("--actor.num_nodes") * number("--actor.num_gpus_per_node")
    engines = number("--vllm.num_engines") * number("--vllm.tensor_parallel_size")
    return training if "--train.colocate_all" in command else training + engines


def _placement(config: GrpoConfig, layout: Layout) -> list[str]:
    nodes, gpus, size = str(layout.trainer_nodes), str(layout.gpus_per_node), config.rollout.tensor_parallel
    made = ["--actor.num_nodes", nodes, "--actor.num_gpus_per_node", gpus]
    engines = (layout.rollout_gpus or layout.trainer_gpus) // size
    made += ["--vllm.num_engines", str(engines), "--vllm.tensor_parallel_size", str(size)]
    made += ["--vllm.gpu_memory_utilization", str(config.rollout.gpu_memory_share), "--vllm.sync_backend", "nccl"]
    if not layout.rollout_nodes:
        # All share the GPUs and sleep in turns.
        made += ["--train.colocate_all", "--vllm.enable_sleep", "--ds.enable_sleep"]
    if config.beta > 0:
        made += ["--ref.num_nodes", nodes, "--ref.num_gpus_per_node", gpus, "--train.colocate_actor_ref"]
        made += ["--ref.offload"]
    return made


def _algorithm(config: GrpoConfig) -> list[str]:
    made = ["--algo.advantage.estimator", "group_norm", "--actor.loss_agg_mode", "token-mean"]
    made += ["--actor.eps_clip_low_high", *_CLIP, "--actor.aux_loss_coef", "0"]
    made += ["--algo.kl.init_coef", str(config.beta)]
    if config.beta > 0:
        made += ["--algo.kl.use_loss", "--algo.kl.estimator", "k3"]
    correction = config.importance_sampling
    if correction.mode == "token_truncate":
        made += ["--algo.advantage.is_correction_level", "token", "--algo.advantage.is_correction_mode", "clip"]
        made += ["--algo.advantage.is_correction_threshold", str(correction.threshold)]
    return made


def _optimizer(config: GrpoConfig) -> list[str]:
    optimizer = config.optimizer
    made = ["--actor.adam.lr", str(config.learning_rate), "--actor.adam.betas", "0.9", "0.999"]
    made += ["--actor.adam.weight_decay", str(optimizer.weight_decay), "--actor.max_norm", str(optimizer.max_grad_norm)]
    made += ["--actor.lr_scheduler", _SCHEDULES[optimizer.schedule]]
    return [*made, "--actor.lr_warmup_ratio", str(optimizer.warmup_ratio)]
