# SPDX-License-Identifier: MIT-0
"""A framework as a child process: its log kept and read, its end waited for, and its whole group ended with us."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lingoss.errors import LingossError, TemporaryError

_PATIENCE = (
    60.0  # seconds from SIGTERM to SIGKILL; neither framework saves on a signal, so there is nothing to wait for
)
_BEAT = 1.0
_REMEMBERED = 400  # lines in which the reason of a failure is looked for
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_RAY = re.compile(r"^\((?:\w|\.)+ (?:pid|ip)=[^)]*\)\s*")
_ERROR = re.compile(r"(?:^|\s)((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b.*)")


def plain(line: str) -> str:
    """A line of a log without colours and without the name of the Ray process that wrote it."""
    return _RAY.sub("", _ANSI.sub("", line.rstrip("\r\n")))


def follow(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    on_line: Callable[[str], None],
    stop: Callable[[], bool],
    tick: Callable[[], None] = lambda: None,
) -> bool:
    """Run a command to its end; true when it succeeded, false when `stop` became true and it was ended.

    Its output goes to `log` and to standard error; `on_line` reads each line (see `plain`). `stop` is asked and `tick`
    called about once a second, and what either of the three raises ends the command and passes on.

    Raises:
        TemporaryError: it failed; the message has the last error in its log.
        LingossError: it cannot be started.
    """
    lines: queue.Queue[str | None] = queue.Queue(10_000)
    last: deque[str] = deque(maxlen=_REMEMBERED)
    try:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=log.parent,  # libraries drop files where they are started, which is read-only in a pod
            start_new_session=True,  # so that all of it can be ended, and a Ctrl-C is ours to pass on
        )
    except OSError as error:
        raise LingossError(f"cannot start {command[0]}: {error.strerror or error}") from error
    reader = threading.Thread(target=_read, args=(process, log, lines), daemon=True)
    reader.start()
    try:
        beat = time.monotonic()
        while (line := _next(lines)) is not None:
            if line:
                last.append(line)
                on_line(line)
            if time.monotonic() >= beat:
                beat = time.monotonic() + _BEAT
                tick()
                if stop():
                    return False
        status = process.wait()
    finally:
        _end(process)
        reader.join(timeout=_PATIENCE)
    if status:
        raise TemporaryError(
            f"{_named(command)} ended with status {status}: {reason(last)} (all of it: {log}); started again, the run "
            "goes on from its last checkpoint"
        )
    return True


def reason(lines: Sequence[str]) -> str:
    """The last line of a log that tells of an error, else its last line."""
    for line in reversed(lines):
        if found := _ERROR.search(line):
            return found.group(1).strip()[:300]
    told = [line for line in lines if line.strip()]
    return told[-1].strip()[:300] if told else "it said nothing"


def _next(lines: "queue.Queue[str | None]") -> str | None:
    """The next line; an empty one after a second without any; None at the end."""
    try:
        return lines.get(timeout=_BEAT)
    except queue.Empty:
        return ""


def _read(process: "subprocess.Popen[bytes]", log: Path, lines: "queue.Queue[str | None]") -> None:
    assert process.stdout
    try:
        with log.open("ab") as kept:
            for raw in process.stdout:
                with contextlib.suppress(OSError):  # a full disk must not keep the framework from writing
                    kept.write(raw)
                    kept.flush()
                sys.stderr.write(raw.decode(errors="replace"))
                with contextlib.suppress(queue.Full):  # nobody reads: the command is being ended
                    lines.put(plain(raw.decode(errors="replace")), timeout=_PATIENCE)
    finally:
        with contextlib.suppress(queue.Full):
            lines.put(None, timeout=_PATIENCE)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM to the command and all that it started, SIGKILL to what is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_PATIENCE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _named(command: Sequence[str]) -> str:
    return command[command.index("-m") + 1] if "-m" in command else Path(command[0]).name
