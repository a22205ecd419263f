# SPDX-License-Identifier: MIT-0
"""How much disk a run's checkpoints take: told before the run starts, and kept while it saves."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lingoss import runs
from lingoss.checkpoints.tensors import Shapes
from lingoss.errors import LingossError

_SMALL_FILES = 200_000  # trainer state, random states, scheduler, manifest
_MARGIN = 1.02


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """Bytes of one checkpoint and of the final adapter, and the number of trained parameters."""

    parameters: int
    checkpoint: int
    adapter: int

    def needed(self, keep: int) -> int:
        """Fewest bytes with which a run can always keep `keep` checkpoints once it has saved as many, and its adapter
        twice: the oldest goes before the next is written, but the newest stays until that one is whole."""
        return max(keep, 2) * self.checkpoint + 2 * self.adapter


def lora_checkpoint_size(shapes: Shapes, adapter_bytes: int = 4) -> CheckpointSize:
    """Size of checkpoints of an adapter with these tensors: its weights and AdamW's two float32 moments."""
    parameters = sum(math.prod(shape) for shape in shapes.values())
    adapter = int(parameters * adapter_bytes * _MARGIN) + _SMALL_FILES
    return CheckpointSize(parameters, int(parameters * (adapter_bytes + 8) * _MARGIN) + 2 * _SMALL_FILES, adapter)


@dataclass(frozen=True, slots=True)
class Held:
    """A checkpoint on disk."""

    step: int
    bytes: int
    whole: bool


def to_delete_first(
    held: Sequence[Held], pinned: Collection[int], size: int, budget: int | None, free: int
) -> set[int]:
    """Steps whose checkpoints must go before one of `size` bytes is written, so that it fits the disk and the budget.

    As few as possible: bad ones, then the oldest; never the newest whole one and none of the `pinned`.

    Raises:
        LingossError: it would not fit even then. Nothing should be deleted in that case.
    """
    newest = max((one.step for one in held if one.whole), default=None)
    candidates = sorted(
        (one for one in held if not one.whole or (one.step != newest and one.step not in pinned)),
        key=lambda one: (one.whole, one.step),
    )
    used, going = sum(one.bytes for one in held), set()
    needed = int(size * _MARGIN) + _SMALL_FILES
    while free < needed or (budget is not None and used + needed > budget):
        if not candidates:
            staying = f"{runs.gigabytes(used)} of checkpoints must stay"
            if free < needed:
                raise LingossError(
                    f"the disk is full: it needs {runs.gigabytes(needed)}, {runs.gigabytes(free)} are free, and {staying}"
                )
            raise LingossError(f"it needs {runs.gigabytes(needed)}, and with a budget of {_budget(budget)} {staying}")
        gone = candidates.pop(0)
        going.add(gone.step)
        used, free = used - gone.bytes, free + gone.bytes
    return going


def _budget(budget: int | None) -> str:
    return runs.gigabytes(budget or 0)
