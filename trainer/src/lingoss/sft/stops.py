# SPDX-License-Identifier: MIT-0
"""When to stop: a signal to any rank stops all of them after the same step.

SIGTERM (Kubernetes, and torchrun, which passes it on) and SIGUSR1 (a graceful stop of hyperpodrun) mean the same.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lingoss.errors import LingossError, TemporaryError
from lingoss.stopping import StopRequest

COORDINATION = "HYPERPOD_SIGNAL_COORDINATION"
STOP_SECONDS = "LINGOSS_STOP_SECONDS"
"""The variable by which `lingoss.torchrun` is told how long its processes may take to stop."""
TORCHRUN_LIMIT = 30.0
"""Seconds after which torchrun itself kills processes that it has sent SIGTERM to (torch 2.11, `PContext.close`)."""


@contextmanager
def stop_early() -> Iterator[None]:
    """Until there is anything to save, let a graceful stop end the process in peace; SIGUSR1 would kill it."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGUSR1, leave)
    yield
    if "RANK" not in os.environ:  # what a launcher started ends now, and may still be told to
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def elastic_events() -> Callable[[], bool] | None:
    """The elastic agent's question whether it wants a stop, which every rank must ask equally often; None without it.

    Importing it takes SIGUSR1 over, so it is imported before `StopRequest` is entered.

    Raises:
        LingossError: coordination is asked for, but the agent is not installed.
    """
    if os.environ.get(COORDINATION, "").lower() != "distributed":
        return None
    try:
        from hyperpod_elastic_agent.elastic_event_handler import elastic_event_detected
    except ImportError as error:
        raise LingossError(
            f"{COORDINATION}=distributed, but hyperpod-elastic-agent cannot be imported ({error}): install it, or "
            "unset the variable"
        ) from error
    return elastic_event_detected  # type: ignore[no-any-return]


def signals(elastic: Callable[[], bool] | None) -> tuple[signal.Signals, ...]:
    """The signals that are ours: all but the one that the elastic agent's handler notes."""
    ours = (signal.SIGTERM, signal.SIGINT)
    return ours if elastic else (*ours, signal.SIGUSR1)


class Stops:
    """Asked once a step on every rank: `local` is what this rank adds to what all `decide`."""

    def __init__(self, request: StopRequest, elastic: Callable[[], bool] | None = None) -> None:
        self._request, self._elastic = request, elastic
        self._decided = False

    def local(self) -> bool:
        """Whether this rank was told to stop. Under the elastic agent this is a collective."""
        asked = self._elastic() if self._elastic else False
        return asked or bool(self._request)

    def decide(self, told: bool) -> bool:
        """Whether to stop now: when any rank was told to."""
        self._decided = told
        return told

    def settle(self) -> None:
        """After a stop: a rank that was not told to stop itself must not look finished to its launcher.

        In an Indexed Job the pod of a node that goes on would count as complete. torchrun starts such ranks again, if it
        may (`--max-restarts`), and waits for the node that was taken away to come back.

        Raises:
            TemporaryError: another rank was told to stop, and this one was not.
        """
        if self._decided and not self._request and not self._elastic:
            raise TemporaryError("another node was told to stop, so all is saved and this one has to be started again")
