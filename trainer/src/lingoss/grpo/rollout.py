# SPDX-License-Identifier: MIT-0
"""How completions are drawn: by our own token loop on transformers, or by the vLLM engine that TRL holds.

Both are given token ids, rendered by our pinned template exactly as evaluation renders them; TRL's own way through
`apply_chat_template` would print today's date into a gpt-oss prompt.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from lingoss.data import Prompt
from lingoss.errors import LingossError
from lingoss.evaluate.batching import Task, batches
from lingoss.evaluate.decoding import Continuation, Draw, decode_batch, sample_seed
from lingoss.grpo.weights import evaluating, merged


@dataclass(frozen=True, slots=True)
class Completion:
    """One sample of a prompt. `logprobs` are those of `ids` in the engine at the sampling temperature; None where it
    has none to tell, empty for greedy samples. `finish_reason` is stop or length."""

    prompt: Prompt
    sample: int
    prompt_ids: list[int]
    ids: list[int]
    logprobs: list[float | None]
    finish_reason: str


class Rollout(Protocol):
    """Draws completions from the policy as it is now."""

    def complete(self, prompts: Sequence[Prompt], samples: int, step: int, greedy: bool = False) -> list[Completion]:
        """`samples` completions of each prompt, those of one prompt beside each other, in the order of the prompts."""


class TransformersRollout:
    """Our token loop on the model that is being trained. A sample is fixed by the run's seed, the step, the prompt and
    its number, so a resumed run draws what it would have drawn; only the rounding of logits depends on the batch."""

    def __init__(
        self,
        model: Any,
        encoded: Mapping[str, list[int]],
        stop_ids: Sequence[int],
        limit: int,
        temperature: float,
        seed: int,
        batch_tokens: int,
    ) -> None:
        self._model, self._encoded, self._stop_ids = model, encoded, stop_ids
        self._limit, self._temperature, self._seed, self._batch_tokens = limit, temperature, seed, batch_tokens

    def complete(self, prompts: Sequence[Prompt], samples: int, step: int, greedy: bool = False) -> list[Completion]:
        """See `Rollout`."""
        tasks = [Task(prompt, self._encoded[prompt.id], tuple(range(samples))) for prompt in prompts]
        found: dict[tuple[str, int], Completion] = {}
        with evaluating(self._model), merged(self._model):
            for batch in batches(tasks, self._limit, self._batch_tokens):
                for completion in self._batch(batch, step, greedy):
                    found[completion.prompt.id, completion.sample] = completion
        return [found[prompt.id, sample] for prompt in prompts for sample in range(samples)]

    def _batch(self, batch: Sequence[Task], step: int, greedy: bool) -> Iterator[Completion]:
        wanted = [(place, task, sample) for place, task in enumerate(batch) for sample in task.samples]
        draws = [Draw(place, rollout_seed(self._seed, step, task.prompt.id, sample)) for place, task, sample in wanted]
        temperature = 0.0 if greedy else self._temperature
        drawn = decode_batch(self._model, [task.ids for task in batch], draws, self._stop_ids, self._limit, temperature)
        for (_, task, sample), one in zip(wanted, drawn, strict=True):
            yield _completion(task.prompt, sample, task.ids, one)


class VllmRollout:
    """TRL's vLLM engine, colocated or a server; its weights are synced before by whoever holds it.

    `generation` is TRL's `VLLMGeneration` (trl 1.16), which returns token ids with their log-probabilities and no
    reason to stop, so that is read off the last token.
    """

    def __init__(self, generation: Any, encoded: Mapping[str, list[int]], stop_ids: Sequence[int]) -> None:
        self._generation, self._encoded, self._stop_ids = generation, encoded, frozenset(stop_ids)

    def complete(self, prompts: Sequence[Prompt], samples: int, step: int, greedy: bool = False) -> list[Completion]:
        """See `Rollout`. What the engine draws depends on its own random state."""
        wanted = [(prompt, sample) for prompt in prompts for sample in range(samples)]
        temperature = self._generation.temperature
        if greedy:
            self._generation.temperature = 0.0
        try:
            with _uncollected():
                _, ids, logprobs, _ = self._generation.generate(
                    prompts=[self._encoded[prompt.id] for prompt, _ in wanted], images=None, num_generations=samples
                )
        finally:
            self._generation.temperature = temperature
        if len(ids) != len(wanted) or not all(ids):
            raise LingossError(
                f"the rollout engine gave {sum(map(bool, ids))} completions for {len(wanted)} requests: look at its log"
            )
        found = []
        for (prompt, sample), tokens, likely in zip(wanted, ids, logprobs, strict=True):
            reason = "stop" if tokens[-1] in self._stop_ids else "length"
            own: list[float | None] = [] if greedy else [one[0] for one in likely]
            found.append(Completion(prompt, sample, self._encoded[prompt.id], list(tokens), own, reason))
        return found


def rollout_seed(seed: int, step: int, prompt_id: str, sample: int) -> int:
    """The seed of one sample of one step (63 bits); another step draws other ones from the same prompt."""
    return sample_seed(seed, f"{step}\0{prompt_id}", sample)


def _completion(prompt: Prompt, sample: int, ids: list[int], drawn: Continuation) -> Completion:
    return Completion(prompt, sample, ids, drawn.ids, list(drawn.logprobs), drawn.finish_reason)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would walk through all of torch again and again: a colocated vLLM makes an
    object for each token of each sequence, and the GPU waits while it is searched."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
