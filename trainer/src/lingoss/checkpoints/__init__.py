# SPDX-License-Identifier: MIT-0
"""Checkpoints: written aside, verified, published by one rename, rotated; and which of them to resume from.

Reading order: `store` (a run's checkpoints), `manifest` (what makes one whole), `budget` (how much disk), `layout` and
`sharded` (tensors in parts, written and read by several ranks), `training` (what is held), `sources` and `dcp` (whatever
else holds an adapter), `lora` (what an adapter changes). On these stand the commands: `examine`, `convert`, `merge`, `prune`.
"""

from lingoss.checkpoints.adapter import base_shapes, lora_shapes, save_adapter
from lingoss.checkpoints.budget import CheckpointSize, lora_checkpoint_size
from lingoss.checkpoints.manifest import BadCheckpoint, check_tensors, verify, write_manifest
from lingoss.checkpoints.store import CheckpointStore, Saved
from lingoss.checkpoints.tensors import tensor_shapes

__all__ = [
    "BadCheckpoint",
    "CheckpointSize",
    "CheckpointStore",
    "Saved",
    "base_shapes",
    "check_tensors",
    "lora_checkpoint_size",
    "lora_shapes",
    "save_adapter",
    "tensor_shapes",
    "verify",
    "write_manifest",
]
