# SPDX-License-Identifier: MIT-0
"""Signals as a wish to stop at the next good moment, for work that is worth saving first."""

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""From Kubernetes or a launcher, from a keyboard, and from an elastic agent that resizes the job."""


class StopRequest:
    """While entered, `signals` only set `signal_number`; the work asks for it where it can stop.

    Further ones change nothing (work that is being saved is not disturbed), but a second Ctrl-C does not wait and
    raises KeyboardInterrupt. Outside of the main thread signals are left alone. `tell=False` says nothing of it.
    """

    def __init__(self, signals: Sequence[signal.Signals] = SIGNALS, tell: bool = True) -> None:
        self.signal_number: int | None = None
        self._signals, self._tell = signals, tell
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in self._signals}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._note:  # what the work has put in its place stays
                signal.signal(number, handler)
        self._before = {}

    def raise_if_interrupted(self) -> None:
        """After the work is saved: pass a Ctrl-C on, so that the shell sees it (status 130). Others end in peace."""
        if self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        first, self.signal_number = self.signal_number is None, number
        if self._tell and (first or number == signal.SIGINT):
            hint = "; again to stop at once" if number == signal.SIGINT else ""
            print(f"\n{signal.Signals(number).name}: stopping after this step{hint}", file=sys.stderr, flush=True)
