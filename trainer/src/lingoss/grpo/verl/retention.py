# SPDX-License-Identifier: MIT-0
"""veRL's checkpoint callback (0.9.1, `trainer.checkpoint_callback_class`): old checkpoints go after each save.

veRL counts only what the same process has written and leaves half of each folder behind (verl#7395), so after every
restart the disk would hold as many again.
"""

from pathlib import Path
from typing import Any

from lingoss.grpo.verl.checkpoints import rotate


class Retention:
    """Called on the driver, after the shards, the position in the data and the tracker are written."""

    def __init__(self, config: Any = None) -> None:
        # The largest number at once has the one being written among them.
        self._keep = max(1, int(config.trainer.max_actor_ckpt_to_keep) - 1)

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, **_: Any) -> None:
        """Keep the newest whole ones."""
        rotate(Path(checkpoint_dir).parent, self._keep)
