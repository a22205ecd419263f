# SPDX-License-Identifier: MIT-0
"""Stage sft: LoRA fine-tuning on the assistant's tokens, with TRL. Killed anywhere, the same command goes on exactly.

Reading order: `run` (the stage), `examples` (which rows), `dataset` (rows to tokens and the loss mask), `order` (which
row when), `trainer` (TRL's loop with our batches, checkpoints and stops), `plan` (the same without training).
"""

from lingoss.sft.plan import plan
from lingoss.sft.run import run

__all__ = ["plan", "run"]
