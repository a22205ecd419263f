# SPDX-License-Identifier: MIT-0
"""The prompts of a run as token ids, by our pinned template: what evaluation gives to the model, to the token."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.evaluate.engine import prompt_ids


class Encoded(Mapping[str, list[int]]):
    """Token ids by prompt id. `model_length`: tokens of the longest prompt with a whole completion.

    Raises:
        LingossError: a prompt leaves no room for a completion of `limit` tokens in the model's `context`.
    """

    def __init__(self, prompts: Sequence[Prompt], format: str, tokenizer: Any, limit: int, context: int) -> None:
        self._ids = {prompt.id: prompt_ids(prompt, format, tokenizer) for prompt in prompts}
        longest = max(self._ids, key=lambda name: len(self._ids[name]))
        self.model_length = len(self._ids[longest]) + limit
        if self.model_length > context:
            raise LingossError(
                f"prompt {longest} has {len(self._ids[longest])} tokens; with completions of {limit} that is more than "
                f"the model's context of {context}: lower max_completion_length, or take that prompt out"
            )

    def __getitem__(self, prompt: str) -> list[int]:
        return self._ids[prompt]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
