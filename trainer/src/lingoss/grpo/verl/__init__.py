# SPDX-License-Identifier: MIT-0
"""Engine verl: veRL 0.9.1 trains the SFT adapter, or all weights, of a chat model with FSDP2; the control for TRL.

Reading order: `engine` (what is ours around it), `command` (our config as its Hydra overrides), `data` (prompts as
parquet), `reward_manager` (which completions were cut), `checkpoints` and `retention` (what it leaves on the disk),
`collect` (its shards as an adapter or a model), `log` (what it tells).
"""

from lingoss.grpo.verl.engine import Verl

__all__ = ["Verl"]
