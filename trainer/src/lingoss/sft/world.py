# SPDX-License-Identifier: MIT-0
"""The processes of one training: who they are, what they agree on, and how an error of one ends all of them.

A launcher (torchrun, hyperpodrun) starts every process ("rank") with the same command and tells it its number by the
environment. Only rank 0 touches the run folder and tells how things go. Imports torch only when there are several.
"""

import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, TypeVar

from lingoss.errors import LingossError, TemporaryError

T = TypeVar("T")

_FAILURE, _TOLD = "failure", "told"  # keys of the store
_TELLING = timedelta(seconds=10)


class AgreedError(LingossError):
    """An error that every rank raises at the same place, so that rank 0 tells it for all."""

    def __init__(self, text: str, temporary: bool = False) -> None:
        super().__init__(text)
        self.temporary = temporary


class World:
    """The ranks of this training. Use `World.join` in a `with` statement; `World()` is one process alone."""

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0, local_size: int = 1) -> None:
        self.rank, self.size, self.local_rank, self.local_size = rank, size, local_rank, local_size
        self._store: Any = None
        self._control: Any = None
        self._told: Exception | None = None

    @classmethod
    def join(cls, patience: float, wait: float) -> "World":
        """The world that the launcher's environment describes, joined; one process alone where there is none.

        A collective of training may take `patience` seconds; what ranks do while others wait may take `wait` more.

        Raises:
            TemporaryError: the other ranks did not come.
        """
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return cls()
        numbers = [int(os.environ.get(name, 0)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
        world = cls(numbers[0], numbers[1], numbers[2], numbers[3] or 1)
        world._connect(patience, wait)
        return world

    @property
    def joined(self) -> bool:
        """Whether a launcher started this process, if only one of it."""
        return self._store is not None

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes and tells."""
        return self.rank == 0

    def agree(self, work: Callable[[], T]) -> T:
        """The result of `work`, done by every rank; when one refuses, all do.

        Raises:
            AgreedError: the first refusal by rank; a rank alone raises its own error.
        """
        if not self.joined:
            return work()
        result, refusal = None, None
        try:
            result = work()
        except LingossError as error:
            refusal = _record(error)
        for rank, found in enumerate(self.gather(refusal)):
            if found is not None:
                where = "" if rank == 0 else f"rank {rank} of {self.size}: "
                raise _agreed(found, where)
        return result  # type: ignore[return-value]

    def first_does(self, work: Callable[[], T]) -> T:
        """What `work` returns on rank 0, which alone does it while the others wait; it must be plain data.

        Raises:
            AgreedError: it refused; a rank alone raises its own error.
        """
        if not self.joined:
            return work()
        told: list[Any] = [None, None]
        if self.first:
            try:
                told[0] = work()
            except LingossError as error:
                told[1] = _record(error)
        import torch.distributed as dist

        dist.broadcast_object_list(told, src=0, group=self._control)
        if told[1] is not None:
            raise _agreed(told[1], "")
        return told[0]  # type: ignore[no-any-return]

    def gather(self, value: T) -> list[T]:
        """`value` of every rank, by rank; it must be plain data and small."""
        if not self.joined:
            return [value]
        import torch.distributed as dist

        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self._control)
        return found

    def gather_numbers(self, values: list[int]) -> list[list[int]]:
        """`values` of every rank, by rank: one small collective, for every step. All lists have the same length."""
        if not self.joined:
            return [values]
        import torch
        import torch.distributed as dist

        mine = torch.tensor(values, dtype=torch.int64)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(found, mine, group=self._control)
        return [one.tolist() for one in found]

    @contextmanager
    def one_error(self) -> Iterator[None]:
        """Inside, the first error of any rank is told, once, and ends the others by a `LingossError` that quotes it.

        After it, however it ends, nothing more than the run folder's end may follow: signals are not heeded any more.
        """
        if not self.joined:
            yield
            return
        try:
            yield
            _end_in_peace()
        except Exception as error:
            _end_in_peace()
            quoted = self._tell(error)
            if quoted is error:
                raise
            raise quoted from error

    def __enter__(self) -> "World":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.joined:
            return
        _end_in_peace()
        if isinstance(error, Exception):
            self._tell(error)
            self._wait_until_told(error)
            raise SystemExit(_status(error)) from error
        if isinstance(error, KeyboardInterrupt) and not self.first:
            raise SystemExit(128 + signal.SIGINT) from error
        if error is None:
            import torch.distributed as dist

            dist.destroy_process_group()

    def _connect(self, patience: float, wait: float) -> None:
        import torch
        import torch.distributed as dist

        backend = "gloo"
        if torch.cuda.is_available():
            if self.local_rank >= (count := torch.cuda.device_count()):
                raise LingossError(
                    f"rank {self.rank} has no GPU of its own: {self.local_size} processes were started on a node with "
                    f"{count}; lower --nproc-per-node"
                )
            torch.cuda.set_device(self.local_rank)
            backend = "cpu:gloo,cuda:nccl"
        limit = timedelta(seconds=patience)
        try:
            store, _, _ = next(dist.rendezvous("env://", self.rank, self.size, timeout=limit))
            dist.init_process_group(
                backend, store=dist.PrefixStore("training", store), rank=self.rank, world_size=self.size, timeout=limit
            )
            self._control = dist.new_group(backend="gloo", timeout=timedelta(seconds=patience + wait))
        except RuntimeError as error:
            raise TemporaryError(
                f"rank {self.rank} of {self.size} did not meet the others at {os.environ.get('MASTER_ADDR')} port "
                f"{os.environ.get('MASTER_PORT')} ({_first_line(error)}): look whether all of them were started"
            ) from error
        self._store = dist.PrefixStore("lingoss", store)

    def _tell(self, error: Exception) -> Exception:
        """Tell `error` unless it has been told; the error that it was, if another rank had one before."""
        if error is self._told:
            return error
        if isinstance(error, AgreedError):
            self._told = error
            if self.first:
                _print(str(error))
                with suppress(RuntimeError):
                    self._store.set(_TOLD, "yes")
            return error
        lost = _lost_contact(error)
        text = f"rank {self.rank} of {self.size} on {socket.gethostname()}: {_sentence(error, lost)}"
        mine = json.dumps({"text": text, "status": _status(error)})
        try:
            winner = self._store.compare_set(_FAILURE, "", mine).decode()
        except RuntimeError:  # the store has gone with its process
            winner = mine
        if winner == mine:
            _print(text)
            if not isinstance(error, LingossError) and not lost:
                traceback.print_exception(error)
            quoted: Exception = TemporaryError(text) if lost else error
        else:
            record = json.loads(winner)
            quoted = (LingossError if record["status"] == 2 else TemporaryError)(record["text"])
        self._told = quoted
        return quoted

    def _wait_until_told(self, error: Exception) -> None:
        """Keep the connections open until rank 0 has told an agreed error, so that it does not meet another one."""
        if isinstance(error, AgreedError) and not self.first:
            with suppress(RuntimeError):
                self._store.wait([_TOLD], _TELLING)


def _end_in_peace() -> None:
    """What is left is the end: the launcher, which ends all ranks as soon as one has ended, shall not disturb it."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)


def _record(error: LingossError) -> tuple[str, bool]:
    return str(error), isinstance(error, TemporaryError)


def _agreed(record: tuple[str, bool], where: str) -> AgreedError:
    return AgreedError(where + record[0], record[1])


def _status(error: Exception) -> int:
    """The exit status of the command for that error: 2 where no retry mends it."""
    temporary = isinstance(error, TemporaryError) or (isinstance(error, AgreedError) and error.temporary)
    return 2 if isinstance(error, LingossError) and not temporary else 1


def _lost_contact(error: Exception) -> bool:
    """Whether a collective failed because another rank is gone, and not through what this one did."""
    import torch.distributed as dist

    text = str(error).lower()
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and ("gloo" in text or "nccl" in text))


def _sentence(error: Exception, lost: bool) -> str:
    if lost:
        return (
            f"another rank has gone or does not answer ({_first_line(error)}): its own log says why. "
            "Started again, the run goes on from its last checkpoint"
        )
    return str(error) if isinstance(error, LingossError) else f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _print(text: str) -> None:
    print(f"lingoss sft: {text}", file=sys.stderr, flush=True)
