# SPDX-License-Identifier: MIT-0
"""What `run` would do, told without loading a model: base, SFT run, gate, adapter, prompts, steps, disk."""

from collections.abc import Sequence
from typing import Any

from lingoss import runs
from lingoss.config import GrpoConfig
from lingoss.data import Prompt, language_table
from lingoss.errors import LingossError
from lingoss.grpo.prompts import training_plan
from lingoss.grpo.setting import Setting, resolve


def plan(config: GrpoConfig) -> dict[str, Any]:
    """Plain values for YAML. What would stop the start is told, not raised.

    Raises:
        LingossError: the prompts have faults.
    """
    try:
        setting = resolve(config)
    except LingossError as missing:
        # Bad prompts must be told; a missing parent only means that SFT has not been run yet.
        prompts = training_plan(config)
        return {"parent": str(missing), **_prompts(config, prompts.rows, prompts.validation, prompts.counts)}
    size, prompts = setting.size, setting.prompts
    common = {
        "parent": setting.sft.name,
        "base": setting.base.hub_id,
        **_folder(setting),
        "gate": _gate(setting),
    }
    if config.engine != "trl":
        from lingoss.grpo.engines import engine
        from lingoss.grpo.ray.stage import plan as plan_on_ray

        rest = plan_on_ray(config, setting, engine(config.engine))
        told = _prompts(config, prompts.rows, prompts.validation, prompts.counts)
        return {**common, **told, "completion_length": setting.completion_length, **rest}
    return {
        **common,
        "starts": _starts(setting),
        "adapter": {
            "tensors": len(setting.adapter_shapes),
            "parameters": size.parameters,
            "experts": any(".experts." in name for name in setting.adapter_shapes),
        },
        **_prompts(config, prompts.rows, prompts.validation, prompts.counts),
        "completion_length": setting.completion_length,
        "disk": {
            "needed": runs.gigabytes(size.needed(setting.kept_checkpoints)),
            "one_checkpoint": runs.gigabytes(size.checkpoint),
            "free": runs.gigabytes(runs.free_bytes(config.root)),
        },
    }


def _folder(setting: Setting) -> dict[str, Any]:
    folder = setting.folder()
    state = runs.read_run(folder.path).state if folder.path.is_dir() else "new"
    return {"run": folder.name, "state": "done" if folder.done else state}


def _gate(setting: Setting) -> dict[str, str] | str:
    gate = setting.gate
    return {"outcome": gate.outcome, "evaluation": gate.evaluation, "reason": gate.reason} if gate else "none yet"


def _starts(setting: Setting) -> str:
    try:
        setting.require_start()
    except LingossError as refusal:
        return f"no: {refusal}"
    return "yes"


def _prompts(
    config: GrpoConfig, rows: Sequence[Prompt], validation: Sequence[Prompt], counts: dict[str, int]
) -> dict[str, Any]:
    table = language_table(rows)
    return {
        "prompts": {"all": table.total, "crossed": table.crossed, "two_languages": table.split_requests, **counts},
        "languages": table.to_rows(),
        "steps": config.max_steps,
        "prompts_a_step": config.prompts_per_step,
        "completions_a_step": config.prompts_per_step * config.num_generations,
        "passes": round(config.max_steps * config.prompts_per_step / table.total, 3),
        "validation": {"prompts": len(validation), "every_steps": config.validation.steps},
    }
