# SPDX-License-Identifier: MIT-0
"""The rows that `lingoss runs` prints."""

from dataclasses import dataclass
from pathlib import Path

from lingoss.runs.files import folder_size, gigabytes
from lingoss.runs.read import RunInfo, list_runs

HEADERS = ("run", "state", "step", "heartbeat", "parent", "started", "size", "note")

# Who kills a process leaves no word in its run's folder; on a cluster the pod's status tells which it was.
LOST = "killed without a word (out of memory? `kubectl describe pod`) or cut off; started again, it goes on"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. `state` is that of the folder, or "lost" when it should be running and gives no sign of life."""

    name: str
    state: str
    step: int | None
    total: int | None
    age: float | None
    """Seconds since the last heartbeat."""
    parents: tuple[str, ...]
    started: str | None
    size: int
    """Bytes of all files in the folder."""
    note: str
    """Why it failed, or what is wrong with the folder; empty when nothing is."""

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of HEADERS."""
        progress = "" if self.step is None else f"{self.step}/{'?' if self.total is None else self.total}"
        return (
            self.name,
            self.state,
            progress,
            "" if self.age is None else f"{duration(self.age)} ago",
            ", ".join(self.parents),
            (self.started or "")[:16].replace("T", " "),
            gigabytes(self.size),
            self.note,
        )


def run_rows(root: Path) -> list[RunRow]:
    """All runs below `root`, oldest first; what is no run folder comes last, with the reason as its note."""
    return [_row(run) for run in list_runs(root)]


def _row(run: RunInfo) -> RunRow:
    lost = run.state == "running" and not run.is_alive
    why = [run.reason] if run.reason and run.state == "failed" else [LOST] if lost else []
    return RunRow(
        name=run.name,
        state="lost" if lost else run.state,
        step=run.step,
        total=run.total,
        age=run.age,
        parents=run.parents,
        started=run.started,
        size=folder_size(run.path),
        note="; ".join((*run.problems, *why)),
    )


def duration(seconds: float) -> str:
    """A time span for people, in its largest whole unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
