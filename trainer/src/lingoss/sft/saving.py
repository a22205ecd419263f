# SPDX-License-Identifier: MIT-0
"""What our trainers add to any trainer of TRL: checkpoints of our store, and a stop before bad numbers reach the weights.

Imports torch, so it is imported only by a run that trains.
"""

import math
from pathlib import Path
from typing import Any

import torch
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import PrinterCallback

from lingoss.checkpoints import CheckpointStore
from lingoss.errors import LingossError


class NonFiniteError(LingossError):
    """Training met NaN or infinity."""


class Saving:
    """Mixed into a trainer of TRL, before it in the order of bases. `store` takes the checkpoints."""

    checks_each_loss = True

    def __init__(self, *args: Any, store: CheckpointStore, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = store
        self.remove_callback(PrinterCallback)  # type: ignore[attr-defined]

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As TRL's, but a loss that is not finite ends the run before it reaches the weights."""
        loss: torch.Tensor = super().training_step(*args, **kwargs)  # type: ignore[misc]
        if self.checks_each_loss and not bool(torch.isfinite(loss)):
            raise NonFiniteError(_not_finite("loss", float(loss), self.state.global_step + 1))  # type: ignore[attr-defined]
        return loss

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None for a checkpoint: `lingoss export` writes one with measured results."""

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[misc]
        if norm is not None and not math.isfinite(float(norm)):
            raise NonFiniteError(_not_finite("gradient", float(norm), self.state.global_step + 1))  # type: ignore[attr-defined]
        return norm

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._store.write(self.state.global_step, self._fill)  # type: ignore[attr-defined]

    def _fill(self, folder: Path) -> None:
        """The files that transformers' resume reads: adapter, optimizer, schedule, random states, position.

        Only the adapter that is trained: a frozen reference beside it is the parent's and is read from there.
        """
        trainer: Any = self
        # Embeddings are never trained; "auto" would look for the base model's config at the Hub, and warn.
        trainer.model.save_pretrained(folder, selected_adapters=["default"], save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)  # PEFT's empty model card
        trainer._save_optimizer_and_scheduler(str(folder))
        trainer._save_scaler(str(folder))
        trainer._save_rng_state(str(folder))
        trainer.state.log_history = []  # metrics.jsonl has it
        trainer.state.save_to_json(str(folder / TRAINER_STATE_NAME))


def _not_finite(what: str, value: float, step: int) -> str:
    return (
        f"the {what} of step {step} is {value}, so the run stops before it reaches the weights; the last checkpoint is "
        "from before. Lower optimizer.learning_rate or optimizer.max_grad_norm, or look at the examples of that step"
    )
