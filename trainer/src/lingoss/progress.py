# SPDX-License-Identifier: MIT-0
"""Progress of long work, in one place: a bar on a terminal, one JSON line for each report anywhere else."""

import json
import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TextIO

LOG_SECONDS = 10.0
"""Seconds between lines of a log about bytes; a terminal's bar moves twice a second."""

AGENT = "HYPERPOD_ELASTICAGENT_SOCKET_SERVER_PATH"
"""Set in processes that HyperPod's agent starts. It judges a node by rules on the standard output of its first one."""


def agent_listens() -> bool:
    """Whether HyperPod's agent reads the standard output of this process, if it is the first one of its node."""
    return AGENT in os.environ


def log_stream() -> TextIO:
    """Where logs go: standard error, for standard output belongs to results; but HyperPod's agent reads that alone."""
    return sys.stdout if agent_listens() else sys.stderr


class Progress:
    """Reports how far a task is, to `log_stream`.

    Use as a context manager and call `advance` for each finished piece, with the facts worth showing:

        with Progress("sft", total=40, unit="step") as progress:
            progress.advance(loss=1.23)
    """

    def __init__(self, task: str, total: int, unit: str, done: int = 0, stream: TextIO | None = None) -> None:
        self._task, self._total, self._unit, self._done = task, total, unit, done
        self._stream = stream or log_stream()
        self._bar: Any = None
        self._start = time.monotonic()

    @property
    def done(self) -> int:
        """Pieces finished so far."""
        return self._done

    def __enter__(self) -> "Progress":
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"),
            )
            bar = Bar(
                *columns, TimeRemainingColumn(), TextColumn("{task.fields[facts]}"), console=Console(file=self._stream)
            )
            bar.add_task(self._task, total=self._total, completed=self._done, unit=self._unit, facts="")
            bar.start()
            self._bar = bar
        return self

    def advance(self, count: int = 1, **facts: object) -> None:
        """`count` more pieces are finished; `facts` (numbers or short strings) are shown beside the bar or in the line."""
        self._done += count
        if self._bar is not None:
            shown = " ".join(f"{name} {_short(value)}" for name, value in facts.items())
            self._bar.update(self._bar.task_ids[0], completed=self._done, facts=shown)
            return
        line = {"task": self._task, "done": self._done, "total": self._total, "unit": self._unit}
        line |= {"seconds": round(time.monotonic() - self._start, 1), **facts}
        print(json.dumps(line, ensure_ascii=False), file=self._stream, flush=True)

    def glimpse(self, part: float) -> None:
        """On a terminal, show that about `part` pieces of the next report are done; elsewhere only reports count."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done + part)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Bytes:
    """Progress of bytes, in megabytes; reports at most every ten seconds, so that a log stays readable.

    Use as a context manager and call it with each number of bytes that is done.
    """

    def __init__(self, task: str, size: int) -> None:
        self._progress = Progress(task, size // 1_000_000, "MB")
        self._every = 0.5 if sys.stderr.isatty() else LOG_SECONDS
        self._waiting, self._told = 0, time.monotonic()

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __call__(self, count: int) -> None:
        """`count` more bytes are done."""
        self._waiting += count
        if time.monotonic() - self._told >= self._every:
            self._tell()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell()
        self._progress.__exit__(kind, error, trace)

    def _tell(self) -> None:
        megabytes, self._waiting = divmod(self._waiting, 1_000_000)
        self._told = time.monotonic()
        self._progress.advance(megabytes)


def note(task: str, facts: Mapping[str, object]) -> None:
    """One line of the log beside the progress: readable on a terminal, JSON elsewhere."""
    stream = log_stream()
    if stream.isatty():
        print(f"{task}: " + ", ".join(f"{key} {value}" for key, value in facts.items()), file=stream)
    else:
        print(json.dumps({"task": task, **facts}, ensure_ascii=False), file=stream, flush=True)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
