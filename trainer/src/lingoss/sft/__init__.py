# SPDX-License-Identifier: MIT-0
"""Stage sft: LoRA fine-tuning on the assistant's tokens, with TRL. Killed anywhere, the same command goes on exactly.

Reading order: `stage` (run), `examples` (which rows), `dataset` (rows to tokens and the loss mask), `order` (which
row when), `trainer` (TRL's loop with our batches, checkpoints and stops), `planning` (the same without training).
"""

from lingoss.sft.planning import plan
from lingoss.sft.stage import run

__all__ = ["plan", "run"]
