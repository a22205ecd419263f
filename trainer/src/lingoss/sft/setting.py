# SPDX-License-Identifier: MIT-0
"""What a run is decided by before any model is loaded: base, examples, tokens, steps, sizes. Shared by run and plan."""

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lingoss import runs
from lingoss.checkpoints import CheckpointSize, base_shapes, lora_checkpoint_size, lora_shapes
from lingoss.checkpoints.tensors import Shapes
from lingoss.config import SftConfig
from lingoss.config.common import Checkpoint
from lingoss.errors import LingossError
from lingoss.prepare import Prepared, prepared
from lingoss.sft.examples import Mix, build_mix
from lingoss.sft.order import total_steps


@dataclass(frozen=True)
class Setting:
    """A run's inputs. `base` is what the parent brought."""

    config: SftConfig
    base: Prepared
    mix: Mix

    @cached_property
    def data_digest(self) -> str:
        """Digest of the examples, whatever their order; part of the run id."""
        from lingoss.data import prompt_digest

        return prompt_digest(self.mix.examples)

    @cached_property
    def steps(self) -> int:
        """Planned optimizer steps."""
        config = self.config
        return total_steps(len(self.mix.examples), config.global_batch, config.epochs, config.max_steps)

    @property
    def trained_examples(self) -> int:
        """Examples that all steps together see."""
        return examples_seen(self.config, len(self.mix.examples), self.steps)

    @cached_property
    def adapter_shapes(self) -> Shapes:
        """Tensors of the adapter."""
        lora = self.config.lora
        return lora_shapes(base_shapes(self.base.model), lora.rank, lora.target_modules, lora.experts)

    @cached_property
    def size(self) -> CheckpointSize:
        """Bytes on disk."""
        return lora_checkpoint_size(self.adapter_shapes)

    def folder(self) -> runs.RunFolder:
        """The run's folder, not opened yet."""
        config = self.config
        return runs.open_run(config.root, "sft", config, (self.base.run,), self.data_digest, config.lock_wait)

    def require_disk(self, path: Path) -> None:
        """Refuse to start what would run out of disk.

        Raises:
            LingossError: too little free space, or the checkpoints would not fit `checkpoint.disk_budget_gb`.
        """
        require_disk(path, self.size.needed(self.config.checkpoint.keep), self.config.checkpoint)


def examples_seen(config: SftConfig, examples: int, steps: int) -> int:
    """Examples in all steps: whole batches with `max_steps`, otherwise exactly `epochs` passes (rounded up)."""
    return steps * config.global_batch if config.epochs is None else math.ceil(config.epochs * examples)


def resolve(config: SftConfig) -> Setting:
    """Find the base model and load the examples.

    Raises:
        LingossError: there is no finished prepare run, or the data has faults.
    """
    parent = runs.find_parent(config.root, "sft", config.parent)
    base = prepared(config.root, parent.name)
    return Setting(config, base, build_mix(config, base.datasets))


def require_disk(path: Path, needed: int, checkpoint: Checkpoint) -> None:
    """Refuse to start a run at `path` that needs that many bytes where they are not free or not granted.

    Raises:
        LingossError: too little free space, or more than `checkpoint.disk_budget_gb`.
    """
    budget = checkpoint.disk_budget_gb
    if budget is not None and needed > budget * 1e9:
        raise LingossError(
            f"checkpoints and adapter need {runs.gigabytes(needed)}, which is more than checkpoint.disk_budget_gb="
            f"{budget:g}: lower checkpoint.keep (now {checkpoint.keep}) or raise the budget"
        )
    runs.require_space(path, needed, "this run")


def context_length(model: Path) -> int:
    """Longest sequence the model is made for, from its configuration.

    Raises:
        LingossError: the configuration cannot be read.
    """
    import json

    try:
        fields = json.loads((model / "config.json").read_text(encoding="utf-8"))
        return int(fields["max_position_embeddings"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise LingossError(f"{model / 'config.json'} does not tell max_position_embeddings: {error}") from error


def require_tracker(name: str) -> None:
    """Refuse `logging.report_to` before anything is loaded when its package is not there. Raises LingossError."""
    if name != "none" and importlib.util.find_spec(name) is None:
        raise LingossError(f"logging.report_to is {name}, which is not installed: install it or set it to none")


def cumulative(counts: Sequence[int], steps: Sequence[Sequence[int]]) -> list[int]:
    """Sum of `counts` of the examples of the first n steps, for n from 0 on."""
    sums = [0]
    for step in steps:
        sums.append(sums[-1] + sum(counts[index] for index in step))
    return sums
