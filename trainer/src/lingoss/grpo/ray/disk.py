# SPDX-License-Identifier: MIT-0
"""How much disk a framework's folder takes, told before it starts and watched while it works."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lingoss.config.common import Checkpoint
from lingoss.errors import LingossError
from lingoss.runs import folder_size, gigabytes, require_space

INTERVAL = 30.0  # seconds between two looks at the disk


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a run takes: inputs that it makes for itself, one checkpoint, how many at once, and its result."""

    inputs: int
    checkpoint: int
    kept: int
    result: int

    @property
    def most(self) -> int:
        """Most bytes at once, with the checkpoint that is being written."""
        return self.inputs + self.kept * self.checkpoint + self.result


def require_room(folder: Path, room: Room, checkpoint: Checkpoint) -> None:
    """Refuse a start for which the disk or the budget is too small; what the run has written already is counted.

    Raises:
        LingossError: says how much is needed and what to change.
    """
    budget = checkpoint.disk_budget_gb
    if budget is not None and room.most > budget * 1e9:
        raise LingossError(
            f"inputs ({gigabytes(room.inputs)}), {room.kept} checkpoints of {gigabytes(room.checkpoint)} and the result "
            f"({gigabytes(room.result)}) need {gigabytes(room.most)}, which is more than checkpoint.disk_budget_gb="
            f"{budget:g}: lower checkpoint.keep (now {checkpoint.keep}) or raise the budget"
        )
    require_space(folder, max(0, room.most - folder_size(folder)), f"this run ({room.kept} checkpoints at once)")


class Guard:
    """While entered, looks at the folder every `INTERVAL` seconds: first lets `prune` delete what nobody needs, then
    compares with the budget. `broken` says what is wrong, once something is.

    The frameworks write whole checkpoints at once, so this cannot keep a full disk away; it ends the run while what was
    saved before is still whole, and says why.
    """

    def __init__(
        self, folder: Path, most: int, prune: Callable[[], None] = lambda: None, interval: float = INTERVAL
    ) -> None:
        self._folder, self._most, self._prune, self._interval = folder, most, prune, interval
        self._over = threading.Event()
        self.broken: str | None = None
        self.peak = 0
        self._thread = threading.Thread(target=self._watch, name="disk guard", daemon=True)

    def look(self) -> None:
        """One look."""
        self._prune()
        used = folder_size(self._folder)
        self.peak = max(self.peak, used)
        if used > self._most:
            self.broken = (
                f"{self._folder} has {gigabytes(used)}, more than the {gigabytes(self._most)} that this run may take"
            )

    def require(self) -> None:
        """Raise LingossError when the budget was exceeded."""
        if self.broken:
            raise LingossError(f"{self.broken}: the run is ended; look what else writes there, or raise the budget")

    def __enter__(self) -> "Guard":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=self._interval)

    def _watch(self) -> None:
        while not self._over.wait(self._interval):
            try:
                self.look()
            except OSError:  # a folder that vanished under the walk; the next look sees it as it is then
                continue
