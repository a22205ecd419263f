# SPDX-License-Identifier: MIT-0
"""One holder per run folder, on any shared file system, without flock.

Each attempt to hold the folder is a numbered file in `lock/`, created with O_EXCL. The highest number is the holder.
Another process may create the next number once the holder has released its file or is gone (no sign of life for
`STALE` seconds, or its process has ended on this very host). A held number can be created once only and is never
removed, so a slow process that acts on an old view fails to create its number, and never disturbs a newer holder.
A holder that finds a higher number has been taken over and must not write any more.
"""

import contextlib
import json
import logging
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lingoss.errors import LingossError
from lingoss.runs.files import make_folder, sync_folder, write_all, writing

STALE = 60.0  # seconds without a sign of life after which a holder counts as gone
BEAT = 5.0  # seconds between signs of life
CONFIRM = 2 * BEAT  # seconds that an old sign must stay unchanged before it counts: clocks of two hosts may differ
POLL = 0.5  # seconds between looks at a lock that is held

_log = logging.getLogger("lingoss.runs")


class LockLostError(LingossError):
    """Another process has taken the run folder over; this one must stop without writing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who wrote a lock file. `start` and `space` tell apart processes that share a host name and a process id."""

    host: str
    pid: int
    token: str
    heartbeat: str  # ISO time, fixed width
    released: bool = False
    start: int | None = None  # process start in clock ticks since boot (Linux)
    space: str | None = None  # boot id and PID namespace (Linux): only inside one does a pid mean anything

    def age(self) -> float:
        """Seconds since the last sign of life, by this host's clock."""
        return max(0.0, time.time() - datetime.fromisoformat(self.heartbeat).timestamp())

    def is_dead(self) -> bool:
        """Whether the holder's process has certainly ended, as far as this host can tell."""
        if self.host != socket.gethostname() or self.space != _pid_space():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it exists and belongs to somebody else
        return self.start is not None and process_start(self.pid) != self.start


def now_iso() -> str:
    """The time now in UTC, always 32 characters wide, so that it can be overwritten in place."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it has ended or the system does not tell."""
    try:
        # The command name in parentheses may hold anything, so count fields after the last one closes.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        # A zombie has ended, though a parent that does not wait for it (pid 1 of many containers) keeps its number.
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _pid_space() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


class Lock:
    """The lock of one run folder. `acquire` and `release` once each; `beat` and `check` in between."""

    def __init__(self, folder: Path, *, stale: float = STALE, confirm: float = CONFIRM, poll: float = POLL) -> None:
        self._folder = folder / "lock"
        self._stale, self._confirm, self._poll = stale, confirm, poll
        self._token = secrets.token_hex(16)
        self._number = 0
        # The heartbeat's thread beats while the main thread releases: a late beat must not take the lock back.
        self._mutex = threading.Lock()
        self._released = False

    def acquire(self, wait: float) -> None:
        """Become the holder. LingossError when the lock is still held after `wait` seconds, naming the holder."""
        make_folder(self._folder)
        started = time.monotonic()
        seen: tuple[int, bytes] | None = None
        unchanged_since = started
        told = False
        while True:
            number = self._top()
            content = self._read(number)
            now = time.monotonic()
            if (number, content) != seen:
                seen, unchanged_since = (number, content), now
            if self._is_free(number, content, now - unchanged_since) and self._create(number + 1):
                return
            if now - started >= wait:
                raise LingossError(self._refusal(number, content, wait))
            if not told and number:
                told = True
                _log.warning("%s; waiting up to %.0f s", self._who(number, content), wait)
            time.sleep(min(self._poll, max(0.0, wait - (now - started))))

    def beat(self) -> None:
        """Give a sign of life. LockLostError after a takeover; LingossError when the file cannot be written."""
        self.check()
        with self._mutex:
            if not self._released:
                self._rewrite(released=False)

    def check(self) -> None:
        """Raise LockLostError unless this process is still the holder."""
        if self._path(self._number + 1).exists():
            content = self._read(self._number + 1)
            raise LockLostError(
                f"{self._who(self._number + 1, content)}, after this process gave no sign of life for a while: "
                "stop, and start again if the other one ends"
            )
        if not self._path(self._number).exists():
            raise LockLostError(f"{self._path(self._number)} was deleted while this process held it: start again")

    def release(self) -> None:
        """Let the next process in. Never raises: a lock that cannot be released grows stale by itself."""
        with self._mutex:
            self._released = True
            with contextlib.suppress(LingossError):
                self.check()
                self._rewrite(released=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06}.json"

    def _top(self) -> int:
        with writing(self._folder):
            numbers = [
                int(name[:-5]) for name in os.listdir(self._folder) if name.endswith(".json") and name[:-5].isdecimal()
            ]
        return max(numbers, default=0)

    def _read(self, number: int) -> bytes:
        try:
            return self._path(number).read_bytes()
        except OSError:
            return b""

    def _is_free(self, number: int, content: bytes, unchanged: float) -> bool:
        if number == 0:
            return True
        holder = _parse(content)
        if holder and (holder.released or holder.is_dead()):
            return True
        return unchanged >= self._stale or (self._age(number, holder) > self._stale and unchanged >= self._confirm)

    def _age(self, number: int, holder: Holder | None) -> float:
        if holder:
            return holder.age()
        try:  # a process that died between creating its file and writing it leaves no time but the file's
            return max(0.0, time.time() - self._path(number).stat().st_mtime)
        except OSError:
            return 0.0

    def _create(self, number: int) -> bool:
        """Create lock file `number`; False when another process was faster."""
        path = self._path(number)
        with writing(path):
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                return False
            try:
                write_all(descriptor, self._content(released=False))
                os.fsync(descriptor)
                sync_folder(self._folder)
            except BaseException:
                # Not held yet: left behind, the empty file would keep everybody out for `stale` seconds.
                path.unlink(missing_ok=True)
                raise
            finally:
                os.close(descriptor)
        self._number = number
        return True

    def _content(self, *, released: bool) -> bytes:
        # Always the same width, so that rewriting needs no space on the disk and leaves no rest.
        return json.dumps(
            {
                "heartbeat": now_iso(),
                "released": int(released),
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "token": self._token,
                "start": process_start(os.getpid()),
                "space": _pid_space(),
            }
        ).encode()

    def _rewrite(self, *, released: bool) -> None:
        path = self._path(self._number)
        with writing(path):
            # Without O_CREAT: this touches our own numbered file or nothing.
            descriptor = os.open(path, os.O_WRONLY)
            try:
                write_all(descriptor, self._content(released=released))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _who(self, number: int, content: bytes) -> str:
        holder = _parse(content)
        name = f"process {holder.pid} on host {holder.host}" if holder else "an unknown process"
        age = self._age(number, holder)
        return f"run {self._folder.parent.name} is held by {name} (last sign of life {age:.0f} s ago)"

    def _refusal(self, number: int, content: bytes, wait: float) -> str:
        return (
            f"{self._who(number, content)}, also after {wait:.0f} s of waiting: wait for it or stop it, raise "
            "lock_wait, or set another `run` for a second run of the same settings"
        )


def _parse(content: bytes) -> Holder | None:
    """The holder in a lock file; None when it is empty or torn."""
    try:
        row = json.loads(content)
        holder = Holder(
            host=str(row["host"]),
            pid=int(row["pid"]),
            token=str(row["token"]),
            heartbeat=str(row["heartbeat"]),
            released=bool(row["released"]),
            start=row["start"],
            space=row["space"],
        )
        datetime.fromisoformat(holder.heartbeat)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return holder
