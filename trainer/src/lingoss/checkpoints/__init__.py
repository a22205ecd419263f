# SPDX-License-Identifier: MIT-0
"""Checkpoints: written aside, verified, published by one rename, rotated; and which of them to resume from."""

from lingoss.checkpoints.adapter import base_shapes, lora_shapes, save_adapter
from lingoss.checkpoints.budget import CheckpointSize, lora_checkpoint_size
from lingoss.checkpoints.manifest import BadCheckpoint, check_tensors, verify, write_manifest
from lingoss.checkpoints.store import CheckpointStore
from lingoss.checkpoints.tensors import tensor_shapes

__all__ = [
    "BadCheckpoint",
    "CheckpointSize",
    "CheckpointStore",
    "base_shapes",
    "check_tensors",
    "lora_checkpoint_size",
    "lora_shapes",
    "save_adapter",
    "tensor_shapes",
    "verify",
    "write_manifest",
]
