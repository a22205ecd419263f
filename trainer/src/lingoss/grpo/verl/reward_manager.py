# SPDX-License-Identifier: MIT-0
"""veRL's reward manager (0.9.1), which also tells the reward how a completion ended and what it is with special tokens.

veRL loads this file by its path. Its own manager hands over the text without special tokens and no more, so a
completion that was cut within its answer would look finished, and earn what it must not.
"""

from typing import Any

import numpy as np
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager  # type: ignore[import-not-found]

from lingoss.rewards import from_environment
from lingoss.transcript import stop_ids


class RewardManager(NaiveRewardManager):  # type: ignore[misc]
    """veRL's, with `extra_info` of each sample completed by `text` and `finish_reason`."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any, *given: Any, **named: Any) -> None:
        super().__init__(config, tokenizer, compute_score, *given, **named)
        self._stops = stop_ids(from_environment().format, tokenizer)

    async def run_single(self, data: Any) -> dict[str, Any]:
        """`{"reward_score": …, "reward_extra_info": {…}}` of one sample."""
        last = data[-1:]
        item = last[0]
        responses = item.batch["responses"]
        length = int(item.batch["attention_mask"][-responses.shape[-1] :].sum())
        ids = [int(one) for one in responses[:length]]
        info = {
            **(item.non_tensor_batch.get("extra_info") or {}),
            "text": self.tokenizer.decode(ids, skip_special_tokens=False),
            "finish_reason": "stop" if ids and ids[-1] in self._stops else "length",
        }
        # A dictionary of its own: the samples of one prompt share theirs and are scored at the same time.
        column = np.empty(1, dtype=object)
        column[0] = info
        last.non_tensor_batch["extra_info"] = column
        found: dict[str, Any] = await super().run_single(last)
        return found
