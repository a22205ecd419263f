# SPDX-License-Identifier: MIT-0
"""TRL's SFTTrainer with three things replaced: which examples a rank sees when, how a checkpoint is written, when to stop.

Imports torch, so it is imported only by a run that trains.
"""

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import DistributedType, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import TrainerCallback
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME, TRAINER_STATE_NAME
from trl import SFTTrainer
from trl.trainer import utils as trl_utils

from lingoss.sft.dataset import IGNORED
from lingoss.sft.saving import Saving
from lingoss.sft.world import World

_INDICES = "examples"  # key of a batch: which rows it holds
_SCHEDULER = "scheduler.json"


class PlannedBatches(Sampler[list[int]]):
    """Micro-batches of a planned run, in order: each step's examples cut into pieces of `size`.

    `batch_size` and `drop_last` are what accelerate asks a batch sampler for.
    """

    drop_last = False

    def __init__(self, steps: Sequence[Sequence[int]], size: int) -> None:
        self.batch_size = size
        self._pieces = [list(step[at : at + size]) for step in steps for at in range(0, len(step), size)]

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)


class Trainer(Saving, SFTTrainer):  # type: ignore[misc]
    """One run, or one rank of it. `pieces` are the micro-batches of this rank; `alive` is told of each.

    `save` is given a step and what fills a folder with that step's checkpoint; every rank calls it.
    """

    def __init__(
        self,
        *args: Any,
        pieces: Sequence[Sequence[int]],
        world: World,
        save: Callable[[int, Callable[[Path], None]], None],
        alive: Callable[[str], None],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        project_learned_positions_only()
        self._pieces, self._world, self._save_step, self._alive = pieces, world, save, alive
        self._consumed: list[int] = []
        # With several ranks each must learn of it, so the gradient tells, in which all ranks' losses meet.
        self.checks_each_loss = not world.joined

    def get_train_dataloader(self) -> Any:
        """The whole run as one pass over this rank's micro-batches; what was trained is skipped by the base class."""
        dataset = self._remove_unused_columns(self.train_dataset, description="training")
        batches = PlannedBatches(self._pieces, self.args.per_device_train_batch_size)
        return DataLoader(Rows(dataset), batch_sampler=batches, collate_fn=self._collate)

    def take_consumed(self) -> list[int]:
        """The examples that this rank has trained on since the last call, in order; `~index` where it was idle."""
        consumed, self._consumed = self._consumed, []
        return consumed

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        """As TRL's, noting which examples it was."""
        self._alive(f"training step {self.state.global_step + 1}")
        indices = inputs.pop(_INDICES)
        if self.model.peft_config["default"].lora_dropout:
            seed_dropout(self.args.seed, self.state.global_step, indices)
        loss = super().training_step(model, inputs, *args, **kwargs)
        self._consumed += indices
        return loss

    def _collate(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        indices = [row.pop(_INDICES) for row in rows]
        return {**self.data_collator(rows), _INDICES: indices}

    def create_accelerator_and_postprocess(self) -> None:
        """As the base class, which shares weights out (FSDP2) on accelerators only: gloo on a CPU does it as well."""
        super().create_accelerator_and_postprocess()
        if self.args.fsdp and self.args.use_cpu:
            state = self.accelerator.state
            state.distributed_type = DistributedType.FSDP
            state.fsdp_plugin = FullyShardedDataParallelPlugin(**self.args.fsdp_plugin_args)
            self.is_fsdp_enabled = True

    def documents(self) -> dict[str, Any]:
        """What a checkpoint of shared-out weights holds beside tensors, by file name."""
        self.state.log_history = []  # metrics.jsonl has it
        return {TRAINER_STATE_NAME: dataclasses.asdict(self.state), _SCHEDULER: self.lr_scheduler.state_dict()}

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._save_step(self.state.global_step, self._fill)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if not self._loads_by_store(resume_from_checkpoint):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Weights and the optimizer's state, from whatever number of ranks they were saved by, to this one."""
        if checkpoint is None or not self._loads_by_store(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        found = self._store.load(Path(checkpoint), self.model_wrapped, self.optimizer)
        schedule = found.get(_SCHEDULER) or torch.load(Path(checkpoint) / SCHEDULER_NAME, weights_only=True)
        self.lr_scheduler.load_state_dict(schedule)
        # A schedule writes the rate when it steps; the one of the step to come is what it wrote last.
        for group, rate in zip(self.optimizer.param_groups, self.lr_scheduler.get_last_lr(), strict=True):
            group["lr"] = rate

    def _loads_by_store(self, checkpoint: str) -> bool:
        """Whether there are several ranks, now or in the checkpoint; one alone reads its own format as ever."""
        return self._world.joined or not (Path(checkpoint) / OPTIMIZER_NAME).exists()

    def _save_rng_state(self, output_dir: str) -> None:
        if not self._world.joined:
            super()._save_rng_state(output_dir)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """No random number depends on an earlier one (see `seed_dropout`), and a checkpoint of several ranks has none."""


class Rows(Dataset[dict[str, Any]]):
    """Examples by index, each with its index; `~index` is that example with nothing to learn."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = dict(self._rows[index if index >= 0 else ~index])
        if index < 0:
            row["labels"] = [IGNORED] * len(row["labels"])
        return {**row, _INDICES: index}


def seed_dropout(seed: int, step: int, indices: Sequence[int]) -> None:
    """Make the dropout of a micro-batch depend on the run's seed, the step and its examples alone.

    So neither a resume nor the number of ranks changes it. Another per_device_batch does: it makes other micro-batches.
    """
    digest = hashlib.sha256(repr((seed, "dropout", step, list(indices))).encode()).digest()
    torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Tells each logged step to `report`; at the end of each step asks `end_step` whether to save and stop there."""

    def __init__(
        self,
        tokens: Sequence[int],
        epochs: Sequence[float],
        report: Callable[[Mapping[str, Any]], None],
        end_step: Callable[[int], bool],
    ) -> None:
        self._tokens, self._epochs, self._report, self._end_step = tokens, epochs, report, end_step
        self._since = 0
        self._clock = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock of the first row, and save and log as often as is asked for now, not before a resume."""
        state.compute_steps(args, state.max_steps)
        self._since, self._clock = state.global_step, time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Save and leave when that was asked for; otherwise only tell the position."""
        if self._end_step(state.global_step):
            control.should_save = control.should_training_stop = True
        return control

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, float] | None = None, **kwargs: Any
    ) -> None:
        """One row for the steps since the last one."""
        if not logs or "loss" not in logs:
            return  # the summary at the end of training
        step, now = state.global_step, time.monotonic()
        seconds = now - self._clock
        tokens = self._tokens[step] - self._tokens[self._since]
        self._since, self._clock = step, now
        self._report(
            {
                "step": step,
                "loss": logs["loss"],
                "lr": logs["learning_rate"],
                "tokens": self._tokens[step],
                "tokens_per_s": round(tokens / seconds, 1) if seconds > 0 else None,
                "grad_norm": logs.get("grad_norm"),
                "epoch": round(self._epochs[step], 4),
                "seconds": round(seconds, 3),
            }
        )


def project_learned_positions_only() -> None:
    """Spare a CPU the projection of the prompt onto the vocabulary, whose result the loss ignores.

    TRL 1.16 (`trainer/utils.py`, `_fused_forward`) asks whether the device has Triton and scores every position where
    it has not, so that shapes stay the same on accelerators that compile. On a CPU that is a quarter of a step.
    """
    if hasattr(trl_utils, "_use_triton"):
        trl_utils._use_triton = lambda device: True
