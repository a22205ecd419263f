# SPDX-License-Identifier: MIT-0
"""How much disk a run's checkpoints will take, told before the run starts."""

import math
from dataclasses import dataclass

from lingoss.checkpoints.tensors import Shapes

_SMALL_FILES = 200_000  # trainer state, random states, scheduler, manifest
_MARGIN = 1.02


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """Bytes of one checkpoint and of the final adapter, and the number of trained parameters."""

    parameters: int
    checkpoint: int
    adapter: int

    def needed(self, keep: int) -> int:
        """Most bytes that a run has on disk at once: `keep` checkpoints, the one being written, the adapter twice."""
        return (keep + 1) * self.checkpoint + 2 * self.adapter


def lora_checkpoint_size(shapes: Shapes, adapter_bytes: int = 4) -> CheckpointSize:
    """Size of checkpoints of an adapter with these tensors: its weights and AdamW's two float32 moments."""
    parameters = sum(math.prod(shape) for shape in shapes.values())
    adapter = int(parameters * adapter_bytes * _MARGIN) + _SMALL_FILES
    return CheckpointSize(parameters, int(parameters * (adapter_bytes + 8) * _MARGIN) + 2 * _SMALL_FILES, adapter)
