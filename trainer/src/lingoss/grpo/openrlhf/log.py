# SPDX-License-Identifier: MIT-0
"""What OpenRLHF's log tells of a step: `… Global step 12: {'policy_loss': …, 'reward': …}` (its `ppo_trainer.py`)."""

import ast
import re

from lingoss.grpo.ray.engine import Row
from lingoss.grpo.ray.prompts import figures

_STEP = re.compile(r"Global step (\d+): (\{.*\})\s*$")
_EVALUATION = re.compile(r"global_step (\d+), eval_metrics: (\{.*\})\s*$")
_NOT_LITERAL = re.compile(r"(?<=[:\s])(-?)(nan|inf)(?=[,}])")

_NAMES = {
    "reward": "reward",
    "policy_loss": "loss",
    "actor_grad_norm": "grad_norm",
    "actor_lr": "lr",
    "kl": "kl",
    "vllm_kl": "kl_rollout",
    "response_length": "tokens",
    "rollout/truncated_rate": "truncated",
    "group_reward_std": "reward/group_std",
    "graded": "graded",
    "timing/generation": "seconds/rollout",
    "timing/ppo_train": "seconds/train",
    "timing/broadcast": "seconds/sync",
    "timing/step_total": "seconds",
    **{name: name for name in ("correct", "unparsed", "format_ok", "abstained", "repetition", "prompt_copy", "failed")},
}
_EVALUATED = {"eval_default_pass1": "validation/reward", "eval_truncated_rate": "validation/truncated"}


def step(line: str) -> Row | None:
    """Step and figures of a line that tells of one, in our names; None for any other line."""
    if found := _STEP.search(line):
        values = _values(found[2])
        terms = {name: name for name in values if isinstance(name, str) and name.startswith("term/")}
        return int(found[1]), figures(values, _NAMES | terms)
    return None


def validation(line: str) -> Row | None:
    """Step and figures of a line that tells of a validation; None for any other line."""
    if found := _EVALUATION.search(line):
        return int(found[1]), figures(_values(found[2]), _EVALUATED)
    return None


def _values(text: str) -> dict[str, object]:
    """The dictionary that Python printed; numbers that are not finite have no literal and become infinite."""
    try:
        found = ast.literal_eval(_NOT_LITERAL.sub(r"\g<1>1e999", text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    return found if isinstance(found, dict) else {}
