# SPDX-License-Identifier: MIT-0
"""A process that makes no progress ends with an error that says where it stood, instead of waiting for ever."""

import contextlib
import faulthandler
import os
import threading
import time
from types import TracebackType

from lingoss.runs.files import write_all

_STDERR = 2
"""The descriptor: another thread may hold the lock of the stream."""
_BACKSTOP = 20.0
"""Seconds that the telling may take; after them the interpreter's own timer, which needs no lock of it, ends it all."""


class Watchdog:
    """While entered, `alive` must be called at least every `seconds`; otherwise the process ends with status 1.

    Before that it prints what it was `doing` and the Python stacks of all its threads on standard error. `who` names
    the process there.
    """

    def __init__(self, seconds: float, who: str) -> None:
        self._seconds, self._who = seconds, who
        self._doing = ""
        self._since = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def alive(self, doing: str) -> None:
        """A sign of progress; `doing` is what comes next."""
        self._doing, self._since = doing, time.monotonic()
        # In C, for a hang that never gives the interpreter's lock back. Arming it again costs some 50 microseconds.
        faulthandler.dump_traceback_later(self._seconds + _BACKSTOP, exit=True, file=_STDERR)

    def __enter__(self) -> "Watchdog":
        self.alive("beginning")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        faulthandler.cancel_dump_traceback_later()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(max(0.0, self._since + self._seconds - time.monotonic())):
            if time.monotonic() - self._since >= self._seconds:
                self._end()

    def _end(self) -> None:
        text = (
            f"lingoss sft: {self._who} made no progress for {self._seconds:g} s (hang_seconds) while {self._doing}: "
            "it ends with status 1, and the run goes on from its last checkpoint when it is started again. "
            "Where its threads are:\n"
        )
        with contextlib.suppress(OSError):  # a closed log must not keep the process alive
            write_all(_STDERR, text.encode())
            faulthandler.dump_traceback(file=_STDERR, all_threads=True)
        os._exit(1)
