# SPDX-License-Identifier: MIT-0
"""The shared folder: is it there, this release's, writable, with room, and fast enough?"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lingoss.doctor.check import Check
from lingoss.doctor.live.machine import found, warned

_GIB = 1 << 30
LEAST_FREE = 50 * _GIB
"""The bf16 copy of a 20B model is 42 GB; less room than that stops prepare and any merged export."""
_PIECE, _PIECES = 1 << 20, 16
SLOW = 20e6
"""Bytes a second, written and flushed. Lustre and local disks do hundreds; an adapter's checkpoint is some 100 MB."""


def volume(root: Path | None) -> Iterator[Check]:
    """All that can be asked of the folder with 16 MiB written and removed again."""
    if root is None:
        yield Check("volume", "skipped", "give the shared folder with --root")
        return
    if not root.is_dir():
        yield found("volume", "volume-mount-failed", f"{root} is no folder: nothing is mounted there")
        return
    try:
        entries = sorted(entry.name for entry in root.iterdir())
    except PermissionError:
        yield found("volume", "path-not-writable", f"user {os.geteuid()} may not read {root}")
        return
    except OSError as error:
        yield found("volume", "filesystem-unavailable", f"{root} cannot be listed: {error.strerror}")
        return
    yield _owner(root, entries)
    yield _room(root)
    yield from _writing(root)


def _owner(root: Path, entries: list[str]) -> Check:
    if "runs" in entries:
        return Check("release", "ok", f"{root / 'runs'} is there")
    others = [name for name in entries if (root / name / "runs").is_dir()]
    if others:
        return found(
            "release", "volume-of-another-release", f"{root} has no runs, but {', '.join(others[:3])} below it has"
        )
    if entries:
        return warned(
            "release", "volume-of-another-release", f"{root} has no runs, but other files: {', '.join(entries[:3])}"
        )
    return Check("release", "ok", f"{root} is empty: stage prepare comes first")


def _room(root: Path) -> Check:
    size = os.statvfs(root)
    free, total = size.f_bavail * size.f_frsize, size.f_blocks * size.f_frsize
    text = f"{free / _GIB:.1f} of {total / _GIB:.1f} GiB free"
    if free < _GIB or (size.f_files and size.f_favail < 1000):
        inodes = f", {size.f_favail} files can be made" if size.f_files else ""
        return found("room", "disk-full", text + inodes)
    if free < LEAST_FREE:
        return warned("room", "disk-full", f"{text}; a 20B model takes 42 GB, and each merged export as much again")
    return Check("room", "ok", text)


def _writing(root: Path) -> Iterator[Check]:
    start = time.monotonic()
    try:
        with tempfile.TemporaryFile(dir=root, prefix=".lingoss-doctor-") as probe:
            for _ in range(_PIECES):
                probe.write(os.urandom(_PIECE))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        yield found(
            "writing", _WHY.get(error.errno or 0, "filesystem-unavailable"), f"{root}: {error.strerror or error}"
        )
        return
    speed = _PIECE * _PIECES / max(time.monotonic() - start, 1e-6)
    text = f"{_PIECE * _PIECES >> 20} MiB written and flushed at {speed / 1e6:,.0f} MB/s"
    if speed < SLOW:
        yield warned("writing", "filesystem-unavailable", f"{text}, which is slow")
    else:
        yield Check("writing", "ok", text)


_WHY = {
    13: "path-not-writable",  # EACCES
    1: "path-not-writable",  # EPERM
    28: "disk-full",  # ENOSPC
    122: "disk-full",  # EDQUOT
    30: "filesystem-unavailable",  # EROFS
}
