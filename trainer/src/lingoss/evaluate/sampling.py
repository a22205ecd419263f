# SPDX-License-Identifier: MIT-0
"""How GRPO samples, as far as the gate before it must do the same: one place for both stages."""

import math
from collections.abc import Mapping
from typing import Any

from lingoss import runs
from lingoss.config import EvaluateConfig, GrpoConfig
from lingoss.errors import LingossError

_ROOM = 1.5  # see `completion_length`
_MULTIPLE = 8


def completion_length(sft: runs.RunInfo) -> int:
    """Longest completion in tokens, from the lengths of the SFT run's rows: what nearly all of its answers needed, and
    half as much again.

    A row of the histogram is prompt and answer together; prompts are all about equally long, so the mean prompt is
    taken off the 99th percentile. Too short cuts right answers off, which then earn nothing; too long costs time and
    memory for loops that nobody wants, since a completion that does not end is left out of the loss anyway.

    Raises:
        LingossError: the SFT run's DONE.json lacks the histogram.
    """
    try:
        record: dict[str, Any] = dict(sft.done_record())
        tokens, rows = record["tokens"], record["examples"]["rows"]
        prompt = (tokens["tokens"] - tokens["learned"]) / rows
        wanted = float(_ROOM * (tokens["p99"] - prompt))
    except (LookupError, TypeError, ZeroDivisionError) as error:
        raise LingossError(
            f"{sft.name} does not tell how long its examples are ({error!r}): set max_completion_length"
        ) from error
    return max(_MULTIPLE, math.ceil(wanted / _MULTIPLE) * _MULTIPLE)


def gate_sampling(config: EvaluateConfig, longest: int) -> dict[str, Any]:
    """What gate.json says of its samples. `longest`: the longest completion that was allowed."""
    gate = config.gate
    return {
        "k": gate.k,
        "temperature": gate.temperature,
        "max_completion_length": longest,
        "mask_truncated_completions": gate.mask_truncated_completions,
        "prompts_per_step": gate.prompts_per_step,
        "reward": dict(gate.reward),
    }


def grpo_sampling(config: GrpoConfig, longest: int) -> dict[str, Any]:
    """The same of a GRPO run."""
    return {
        "k": config.num_generations,
        "temperature": config.sampling.temperature,
        "max_completion_length": longest,
        "mask_truncated_completions": config.mask_truncated_completions,
        "prompts_per_step": config.prompts_per_step,
        "reward": dict(config.reward),
    }


def differences(gate: Mapping[str, Any], grpo: Mapping[str, Any]) -> list[str]:
    """In what a gate was measured otherwise than a GRPO run samples, one phrase each; a gate may not tell."""
    pairs = {**{name: (gate[name], grpo[name]) for name in grpo if name in gate and name != "reward"}}
    if isinstance(rules := gate.get("reward"), Mapping):
        pairs |= {f"reward.{name}": (rules.get(name), value) for name, value in grpo["reward"].items()}
    return [f"{name} {measured} instead of {own}" for name, (measured, own) in pairs.items() if measured != own]
