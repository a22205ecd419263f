# SPDX-License-Identifier: MIT-0
"""What the ranks of a run tell each other about a checkpoint; without a process group there is one rank. Imports torch."""

from typing import TypeVar

from torch import distributed

T = TypeVar("T")


def is_first() -> bool:
    """Whether this is rank 0, or the only process."""
    return not distributed.is_initialized() or distributed.get_rank() == 0


def gathered(value: T) -> list[T]:
    """What every rank gave, in their order. Every rank calls it."""
    if not distributed.is_initialized():
        return [value]
    found: list[T | None] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, value)
    return found  # type: ignore[return-value]  # each place is filled
