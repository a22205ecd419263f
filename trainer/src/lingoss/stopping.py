# SPDX-License-Identifier: MIT-0
"""SIGTERM and Ctrl-C as a wish to stop at the next good moment, for work that is worth saving first."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any


class StopRequest:
    """While entered, SIGTERM and SIGINT only set `signal_number`; the work asks for it where it can stop.

    A second Ctrl-C does not wait and raises KeyboardInterrupt. Outside of the main
    thread signals are left alone.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self.signal_number is not None

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def raise_if_interrupted(self) -> None:
        """After the work is saved: pass a Ctrl-C on, so that the shell sees it (status 130). SIGTERM ends in peace."""
        if self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal_number = number
        hint = "; again to stop at once" if number == signal.SIGINT else ""
        print(f"\n{signal.Signals(number).name}: stopping after this step{hint}", file=sys.stderr, flush=True)
