# SPDX-License-Identifier: MIT-0
"""TRL's settings for each way of rolling out, checked against TRL's own config class."""

from pathlib import Path
from typing import Any

import pytest

from lingoss.config import GrpoConfig
from lingoss.grpo.arguments import arguments, engine_arguments

SERVER = {"mode": "server", "server_url": "http://rollout:8000", "server_timeout": 900.0}


def settings(cuda: bool = True, **changes: Any) -> dict[str, Any]:
    config = GrpoConfig(**{"prompts_per_step": 4, "num_generations": 8, "per_device_batch": 16, **changes})
    return arguments(config, "out", 64, 200, [7, 9], cuda)


def test_one_draw_of_completions_is_one_optimizer_step() -> None:
    found = settings(cuda=False, rollout={"mode": "transformers"})
    assert (found["per_device_train_batch_size"], found["gradient_accumulation_steps"]) == (16, 2)
    assert (found["steps_per_generation"], found["num_iterations"]) == (2, 1)
    assert "use_vllm" not in found
    assert found["use_cpu"] is True


def test_nothing_is_left_to_defaults_that_bias_or_drop() -> None:
    found = settings()
    expected = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "mask_truncated_completions": True,
        "router_aux_loss_coef": 0.0,
        "disable_dropout": True,
        "vllm_importance_sampling_correction": False,  # the trainer's own, see test_grpo_trainer
        "logging_nan_inf_filter": False,
        "shuffle_dataset": False,
        "learning_rate": 5e-6,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": 6,
        "max_steps": 200,
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(("loss", "scale"), [("dapo", "group"), ("dr_grpo", "none")])
def test_rewards_are_scaled_as_the_loss_means_it(loss: str, scale: str) -> None:
    found = settings(loss_type=loss)
    assert (found["loss_type"], found["scale_rewards"]) == (loss, scale)


def test_colocated_vllm() -> None:
    found = settings(rollout={"mode": "colocate", "gpu_memory_utilization": 0.3, "tensor_parallel": 2})
    assert {name: value for name, value in found.items() if "vllm" in name and "importance" not in name} == {
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_max_model_length": 200,
        "vllm_gpu_memory_utilization": 0.3,
        "vllm_tensor_parallel_size": 2,
    }
    assert found["generation_kwargs"] == {"stop_token_ids": [7, 9], "detokenize": False, "flat_logprobs": True}


def test_a_vllm_server() -> None:
    found = settings(rollout=SERVER)
    assert {name: value for name, value in found.items() if "vllm" in name and "importance" not in name} == {
        "use_vllm": True,
        "vllm_mode": "server",
        "vllm_max_model_length": 200,
        "vllm_server_base_url": "http://rollout:8000",
        "vllm_server_timeout": 900.0,
    }


@pytest.mark.parametrize("rollout", [{"mode": "transformers"}, {"mode": "colocate"}, SERVER])
def test_trl_knows_every_setting(tmp_path: Path, rollout: dict[str, Any]) -> None:
    from trl import GRPOConfig

    found = settings(cuda=False, rollout=rollout, dtype="float32")
    made = GRPOConfig(**{**found, "output_dir": str(tmp_path)})
    assert made.generation_batch_size == 32
    assert (made.steps_per_generation, made.scale_rewards) == (2, "group")


def test_the_engine_may_hold_all_that_is_asked_for_at_once_up_to_a_bound() -> None:
    config = GrpoConfig(dtype="bfloat16")
    assert engine_arguments(config, False, 325) == {"dtype": "bfloat16", "max_num_seqs": 325}
    assert engine_arguments(config, True, 4000) == {"dtype": "bfloat16", "max_num_seqs": 512, "moe_backend": "triton"}
