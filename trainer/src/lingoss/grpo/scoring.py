# SPDX-License-Identifier: MIT-0
"""TRL's reward, given completions of ours."""

from collections.abc import Sequence
from typing import Any

from lingoss.config import GrpoConfig
from lingoss.grpo.rollout import Completion
from lingoss.rewards.label import COLUMNS
from lingoss.rewards.trl import Reward
from lingoss.score import Rules, Verdict


class Scorer:
    """`scorer(completions)` gives one verdict for each, in order."""

    def __init__(self, config: GrpoConfig, tokenizer: Any, stop_ids: Sequence[int]) -> None:
        weights: Any = config.reward
        self._reward = Reward(config.format, Rules(**weights), tokenizer, stop_ids)

    def __call__(self, completions: Sequence[Completion]) -> list[Verdict]:
        requests = [one.prompt.request() for one in completions]
        columns: dict[str, Any] = {name: [getattr(request, name) for request in requests] for name in COLUMNS}
        columns["finish_reason"] = [one.finish_reason for one in completions]
        self._reward(completion_ids=[one.ids for one in completions], **columns)
        return list(self._reward.last.verdicts)

    def took(self, seconds: float) -> None:
        """How long the last step took: scoring that would take over 1 % of it runs in processes of its own."""
        self._reward.step_seconds = seconds
