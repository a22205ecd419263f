# SPDX-License-Identifier: MIT-0
"""Engine openrlhf: OpenRLHF 0.11.2 trains all weights of the merged SFT model with ZeRO-3 on many small GPUs.

Reading order: `engine` (what is ours around it), `command` (our config as its command line), `checkpoints` (what it
leaves on the disk, and how a run goes on), `log` (what it tells).
"""

from lingoss.grpo.openrlhf.engine import OpenRlhf

__all__ = ["OpenRlhf"]
