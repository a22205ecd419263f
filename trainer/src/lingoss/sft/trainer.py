# SPDX-License-Identifier: MIT-0
"""TRL's SFTTrainer with three things replaced: which examples a step sees, how a checkpoint is written, when to stop.

Imports torch, so it is imported only by a run that trains.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch.utils.data import DataLoader, Sampler
from transformers import TrainerCallback
from trl import SFTTrainer
from trl.trainer import utils as trl_utils

from lingoss.sft.saving import Saving
from lingoss.stopping import StopRequest


class PlannedBatches(Sampler[list[int]]):
    """Micro-batches of a planned run, in order: each step's examples cut into pieces of `size`.

    With several devices accelerate deals consecutive micro-batches to the ranks, so a step's examples are the same
    however many there are. `batch_size` and `drop_last` are what it asks a batch sampler for.
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
    """One run. `steps` are the example indices of each optimizer step; `store` takes the checkpoints."""

    def __init__(self, *args: Any, steps: Sequence[Sequence[int]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project_learned_positions_only()
        self._steps = steps

    def get_train_dataloader(self) -> Any:
        """The whole run as one pass over planned micro-batches; what was trained is skipped by the base class."""
        batches = PlannedBatches(self._steps, self.args.per_device_train_batch_size)
        dataset = self._remove_unused_columns(self.train_dataset, description="training")
        loader = DataLoader(dataset, batch_sampler=batches, collate_fn=self.data_collator)
        return self.accelerator.prepare(loader)


class Reporter(TrainerCallback):  # type: ignore[misc]
    """Tells each logged step to `report`, each step to `beat`, and stops at the end of a step when asked to."""

    def __init__(
        self,
        tokens: Sequence[int],
        epochs: Sequence[float],
        report: Callable[[Mapping[str, Any]], None],
        beat: Callable[[int], None],
        stop: StopRequest,
    ) -> None:
        self._tokens, self._epochs, self._report, self._beat, self._stop = tokens, epochs, report, beat, stop
        self._since = 0
        self._clock = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock of the first row, and save and log as often as is asked for now, not before a resume."""
        state.compute_steps(args, state.max_steps)
        self._since, self._clock = state.global_step, time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Save and leave when a signal came; otherwise only tell the position."""
        self._beat(state.global_step)
        if self._stop:
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
