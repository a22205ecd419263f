# SPDX-License-Identifier: MIT-0
"""Disk back from checkpoints that nobody needs: chosen for all runs together, the newest whole one of each never."""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lingoss import runs
from lingoss.checkpoints.manifest import verify
from lingoss.checkpoints.store import checkpoint_folders
from lingoss.errors import LingossError
from lingoss.runs.files import folder_size
from lingoss.runs.lock import CONFIRM, POLL, Lock


@dataclass(frozen=True, slots=True)
class Held:
    """A checkpoint of a run. `reason` says why it must stay, None that it may go."""

    run: str
    step: int
    path: Path
    bytes: int
    whole: bool
    finished: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to delete, what to keep and why, and bytes before and after."""

    going: tuple[Held, ...]
    staying: tuple[Held, ...]

    @property
    def freed(self) -> int:
        """Bytes that are freed."""
        return sum(one.bytes for one in self.going)

    @property
    def left(self) -> int:
        """Bytes of the checkpoints that stay."""
        return sum(one.bytes for one in self.staying)


def held(run: runs.RunInfo) -> list[Held]:
    """The checkpoints of a run, oldest first, with what protects them: a process at work, or a choice still to make."""
    reason = None
    if run.is_alive:
        reason = "the run is running"
    elif run.stage == "grpo" and not run.done:
        reason = "the run is unfinished and chooses among its checkpoints at its end"
    return [
        Held(run.name, step, path, folder_size(path), _is_whole(path), run.done, reason)
        for step, path in checkpoint_folders(run.path / "checkpoints")
    ]


def plan(found: Sequence[Held], keep: int = 1, budget: int | None = None) -> Plan:
    """Which checkpoints go so that each run keeps its `keep` newest whole ones, or, with a `budget` in bytes for all
    runs together, only as many as must.

    Bad ones go first, then those of finished runs, then the older steps. The newest whole one of a run stays whatever
    the budget, and so does everything in a run that has none (somebody may want to look at it).
    """
    protected = _protected(found, keep)
    free = [one for one in protected if one.reason is None]
    free.sort(key=lambda one: (one.whole, not one.finished, one.step, one.run))
    total, going = sum(one.bytes for one in found), []
    for one in free:
        if budget is not None and total <= budget:
            break
        going.append(one)
        total -= one.bytes
    chosen = {(one.run, one.step) for one in going}
    staying = tuple(one for one in protected if (one.run, one.step) not in chosen)
    return Plan(tuple(going), staying)


def _protected(found: Sequence[Held], keep: int) -> list[Held]:
    whole: dict[str, list[int]] = defaultdict(list)
    for one in found:
        if one.whole:
            whole[one.run].append(one.step)
    marked = []
    for one in found:
        newest = sorted(whole[one.run])[-max(1, keep) :]
        if one.reason is None and not newest:
            one = replace(one, reason="the run has no whole checkpoint")
        elif one.reason is None and one.whole and one.step in newest:
            one = replace(one, reason="the newest whole one" if one.step == newest[-1] else "among the newest to keep")
        marked.append(one)
    return marked


def prune(root: Path, going: Sequence[Held]) -> tuple[list[Held], list[str]]:
    """Delete what a plan says, run by run under the run's lock; returns what is gone, and why anything is not.

    A run that a process has taken up meanwhile is left alone.
    """
    gone: list[Held] = []
    refused: list[str] = []
    for name in dict.fromkeys(one.run for one in going):
        folder = root / "runs" / name
        lock = Lock(folder)
        try:
            lock.acquire(CONFIRM + 4 * POLL)
        except LingossError as error:
            refused.append(str(error))
            continue
        try:
            for one in (one for one in going if one.run == name):
                shutil.rmtree(one.path, ignore_errors=True)
                (refused.append(f"{one.path} could not be deleted") if one.path.exists() else gone.append(one))
        finally:
            lock.release()
    return gone, refused


def _is_whole(path: Path) -> bool:
    try:
        verify(path, thorough=False)
    except LingossError:
        return False
    return True
