# SPDX-License-Identifier: MIT-0
"""Stage sft: LoRA fine-tuning on the assistant's tokens, with TRL. Killed anywhere, the same command goes on exactly.

Reading order: `stage` (run), `world` (the processes and what they agree on), `work` (what each does), `examples` (which
rows), `dataset` (rows to tokens and the loss mask), `order` (which row when), `share` (which rank gets it), `trainer`
(TRL's loop with our batches and checkpoints), `parallel` and `memory` (is the model whole on a card, and does it fit),
`stops`, `timing` and `watchdog` (how it ends early), `planning` (the same without training).
"""

from lingoss.sft.planning import plan
from lingoss.sft.stage import run

__all__ = ["plan", "run"]
