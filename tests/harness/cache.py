# SPDX-License-Identifier: MIT-0
"""The folder of built tools: one entry per tool and recipe, made once, shared by all clones of this machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class HarnessError(RuntimeError):
    """What went wrong with the machinery itself, in one line that says what to do."""


def root() -> Path:
    """The cache folder: `$LINGOSS_TOOLS`, else `lingoss/tools` in the user's cache folder."""
    chosen = os.environ.get("LINGOSS_TOOLS")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lingoss" / "tools"


def key(*recipe: str | bytes) -> str:
    """12 hex digits that stand for everything an entry is made from; the parts' boundaries count."""
    digest = hashlib.sha256()
    for part in recipe:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:12]


def entry(name: str, recipe: str, make: Callable[[Path], None], keep: int = 8) -> Path:
    """The folder `<root>/<name>/<recipe>`; `make(folder)` fills it if it is not there yet.

    Two processes never make the same entry at once, and a folder that is there is complete: `make` works in a
    folder beside it that is renamed when done. Of one name the `keep` entries that were used last stay.
    """
    place = root() / name / recipe
    if place.is_dir():
        os.utime(place)
        return place
    with lock(root() / name / ".lock", f"another process that makes {name}"):
        for left in place.parent.glob(".making-*"):  # of a process that died: we hold the lock
            shutil.rmtree(left, ignore_errors=True)
        if not place.is_dir():
            making = place.parent / f".making-{recipe}"
            making.mkdir()
            try:
                make(making)
                making.rename(place)
            finally:
                shutil.rmtree(making, ignore_errors=True)
            entries = [p for p in place.parent.iterdir() if p.is_dir() and not p.name.startswith(".")]
            for old in sorted(entries, key=lambda p: p.stat().st_mtime, reverse=True)[keep:]:
                shutil.rmtree(old, ignore_errors=True)
    return place


@contextmanager
def lock(path: Path, holder: str) -> Iterator[None]:
    """Hold the file lock `path`; says once whom it waits for. The kernel frees it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {holder}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print `what` before a long step and its seconds after it."""
    say(f"{what} …")
    start = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - start:.0f} s")


def say(line: str) -> None:
    """One line of progress, on stderr: stdout is for results."""
    print(line, file=sys.stderr, flush=True)
