# SPDX-License-Identifier: MIT-0
"""Wanted samples grouped into batches that fit the memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lingoss.data import Prompt


@dataclass(frozen=True, slots=True)
class Task:
    """Samples of one prompt that are still wanted; `ids` are the prompt's tokens."""

    prompt: Prompt
    ids: list[int]
    samples: tuple[int, ...]


def batches(tasks: Sequence[Task], max_new_tokens: int, batch_tokens: int) -> Iterator[list[Task]]:
    """Tasks of similar length together, longest first so that too little memory shows at once.

    A batch's rows times its longest prompt with its completion stay within `batch_tokens`, unless one sample alone does
    not. A prompt with more samples than fit is split.
    """
    batch: list[Task] = []
    rows = room = 0
    for task in sorted(tasks, key=lambda task: -len(task.ids)):
        left = task.samples
        while left:
            if not batch:
                room = max(1, batch_tokens // (len(task.ids) + max_new_tokens))
            part, left = left[: room - rows], left[room - rows :]
            batch.append(Task(task.prompt, task.ids, part))
            rows += len(part)
            if rows == room:
                yield batch
                batch, rows = [], 0
    if batch:
        yield batch
