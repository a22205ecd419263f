# SPDX-License-Identifier: MIT-0
"""How long a graceful stop takes (the rest of a step, then a save), beside what the cluster grants for it."""

import os
import time
from pathlib import Path
from typing import Any

from lingoss import runs
from lingoss.errors import LingossError
from lingoss.progress import note
from lingoss.runs.files import read_json
from lingoss.sft.stops import COORDINATION, STOP_SECONDS, TORCHRUN_LIMIT

_DISK_RATE = 50e6
"""Bytes a second that a save is expected to reach before one was measured: written, forced to disk, read back."""
_SAVE_OVERHEAD = 1.0  # seconds
_SAVES = 2.0  # a save may take so many times the slowest that was measured: the volume is shared


class Timing:
    """The slowest step and save of a run, kept in its folder for the next start. Only rank 0 writes it."""

    def __init__(self, folder: Path, processes: int, stop_seconds: float | None, checkpoint_bytes: int) -> None:
        self._path, self._processes, self._granted = folder / "timing.json", str(processes), stop_seconds
        self._save = checkpoint_bytes / _DISK_RATE + _SAVE_OVERHEAD
        self._measured: float | None = None
        self._steps: dict[str, float] = {}
        self._since: float | None = None

    @property
    def limit(self) -> float | None:
        """Seconds that a stop may take; None when nothing is known of it."""
        if self._granted is not None and under_plain_torchrun():
            return min(self._granted, TORCHRUN_LIMIT)
        return self._granted

    @property
    def needed(self) -> float:
        """Seconds that a stop takes at most, as far as is known."""
        save = self._save if self._measured is None else self._measured * _SAVES
        return self._steps.get(self._processes, 0.0) + save

    def require(self) -> None:
        """Refuse a start under a limit that is too short.

        Raises:
            LingossError: a stop would be cut off; says what it needs and where that is known from.
        """
        found, _ = read_json(self._path)
        if found is not None:
            self._measured = _number(found.get("save_seconds"))
            steps = found.get("step_seconds")
            if isinstance(steps, dict):
                self._steps = {str(key): value for key, item in steps.items() if (value := _number(item)) is not None}
        if self.limit is None or self.needed <= self.limit:
            return
        source = "an estimate from its size" if self._measured is None else "twice the slowest so far"
        raise LingossError(
            f"a graceful stop needs up to {self.needed:.1f} s ({self._steps.get(self._processes, 0.0):.1f} s for a step "
            f"and {self.needed - self._steps.get(self._processes, 0.0):.1f} s for a save, {source}), but has "
            f"{self._reason()}: {self._remedy()}"
        )

    def step(self) -> None:
        """A step has ended. The first of a process is not counted, for it compiles; a save after it counts apart."""
        now = time.monotonic()
        if self._since is not None:
            self._steps[self._processes] = max(self._steps.get(self._processes, 0.0), now - self._since)
        self._since = now

    def save(self, step: int, seconds: float) -> None:
        """A save has taken so long: tell it beside the limit, and keep it for the next start."""
        self._measured = max(self._measured or 0.0, seconds)
        if self._since is not None:
            self._since = time.monotonic()
        facts: dict[str, Any] = {"step": step, "seconds": round(seconds, 3), "stop_needs": round(self.needed, 1)}
        facts["stop_seconds"] = self.limit
        if self.limit is not None and self.needed > self.limit:
            facts["remark"] = f"a stop needs more than {self._reason()}, and would be cut off: {self._remedy()}"
        note("save", facts)
        steps = {key: round(value, 3) for key, value in self._steps.items()}
        runs.write_json(self._path, {"save_seconds": round(self._measured, 3), "step_seconds": steps})

    def _reason(self) -> str:
        if self.limit != self._granted:
            return f"the {TORCHRUN_LIMIT:g} s after which torchrun kills its processes, whatever stop_seconds says"
        return f"stop_seconds={self._granted:g}"

    def _remedy(self) -> str:
        longer = "start it by python -m lingoss.torchrun" if self.limit != self._granted else "grant more"
        return f"{longer}, or set stop_seconds=null to risk the steps since the last checkpoint"


def under_plain_torchrun() -> bool:
    """Whether torchrun itself started this process; hyperpodrun and `lingoss.torchrun` set a variable of their own."""
    environment = os.environ
    return "TORCHELASTIC_RUN_ID" in environment and not {COORDINATION, STOP_SECONDS} & environment.keys()


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None
