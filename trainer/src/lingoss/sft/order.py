# SPDX-License-Identifier: MIT-0
"""Which example is trained at which step: a function of seed and position alone.

Nothing here is stateful and nothing depends on the number of devices, so a run that is resumed, or resumed on another
number of devices, sees each example at the step where an undisturbed run sees it.
"""

import hashlib
import math
from collections.abc import Sequence

WINDOW = 16
"""Global batches that are sorted by length together: enough to save padding, too few to sort a whole epoch."""


def total_steps(examples: int, global_batch: int, epochs: float | None, max_steps: int | None) -> int:
    """Optimizer steps of a run; the last one may hold fewer examples than the others."""
    return max_steps if max_steps is not None else max(1, math.ceil(examples * (epochs or 0) / global_batch))


def epoch_order(count: int, seed: int, epoch: int) -> list[int]:
    """A permutation of `range(count)`: sorted by a hash, which no version of any library changes."""
    return sorted(range(count), key=lambda index: _hash(seed, "example", epoch, index))


def plan_steps(lengths: Sequence[int], global_batch: int, steps: int, examples: int, seed: int) -> list[list[int]]:
    """Indices of the examples of each step; the step's examples are sorted by length, longest first.

    The stream of examples is one permutation of the data after another, cut after `examples` (0: never) and dealt into
    steps. Windows of `WINDOW` global batches are sorted by length before they are dealt, so that a batch needs little
    padding; then the batches of a window are shuffled, so that length does not rise and fall with the step.
    """
    count = len(lengths)
    wanted = min(steps * global_batch, examples or steps * global_batch)
    epochs = math.ceil(wanted / count)
    stream = [index for epoch in range(epochs) for index in epoch_order(count, seed, epoch)][:wanted]
    planned: list[list[int]] = []
    span = WINDOW * global_batch
    for window, start in enumerate(range(0, wanted, span)):
        # sorted() is stable, so equal lengths keep their order in the stream
        inside = sorted(stream[start : start + span], key=lambda index: -lengths[index])
        whole = len(inside) // global_batch * global_batch
        # the short batch of the run's end holds what the window deals out last; it is always the last step
        batches = [inside[at : at + global_batch] for at in range(0, whole, global_batch)]
        batches.sort(key=lambda batch: _hash(seed, "batch", window, batch))
        planned += batches + ([inside[whole:]] if inside[whole:] else [])
    return planned


def _hash(seed: int, *parts: object) -> bytes:
    return hashlib.sha256(repr((seed, *parts)).encode()).digest()
