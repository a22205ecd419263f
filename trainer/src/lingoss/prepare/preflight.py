# SPDX-License-Identifier: MIT-0
"""What is checked before anything is written, each told in a line of the log: owner, file system, space."""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lingoss import runs
from lingoss.errors import LingossError
from lingoss.runs.files import make_folder, writing

FOLDERS = ("runs", "models", "data", "downloads")
"""What prepare writes to, below the root."""
MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that something will take, and how many of them are there already."""

    what: str
    size: int
    here: int = 0

    @property
    def missing(self) -> int:
        """Bytes that are not there yet."""
        return max(0, self.size - self.here)


def check_root(root: Path) -> None:
    """The root exists, or can be made, and this process may write to it.

    Raises:
        LingossError: it may not; the message has the command that gives it the right.
    """
    uid, gid = os.geteuid(), os.getegid()
    _tell(f"user {uid}, group {gid}")
    try:
        new = not root.is_dir()
        root.mkdir(parents=True, exist_ok=True)
        for folder in (root, *(root / name for name in FOLDERS)):
            if folder.is_dir():
                with tempfile.TemporaryFile(dir=folder, prefix=".preflight-"):
                    pass
    except PermissionError as error:
        raise LingossError(_not_permitted(root, uid, gid)) from error
    except OSError as error:
        if error.errno == errno.EROFS:
            raise LingossError(f"{root} is mounted read-only: mount it writable for prepare") from error
        with writing(root):
            raise
    _tell(f"{root} {'was made' if new else 'exists'} and is writable")
    kind, source, point = file_system(root)
    shared = "Lustre" if kind == "lustre" else f"{kind}, not Lustre: pods on several nodes need a shared one"
    _tell(f"file system of {root} is {shared} ({source} at {point})")


def check_space(root: Path, needs: Sequence[Need], reserve_gb: float) -> None:
    """Compare what is needed with what is free, in one line.

    Raises:
        LingossError: there is too little.
    """
    reserve = int(reserve_gb * 1e9)
    missing = sum(need.missing for need in needs) + reserve
    here = sum(min(need.size, need.here) for need in needs)
    parts = [f"{need.what} {runs.gigabytes(need.size)}" for need in needs if need.size]
    parts += [f"less {runs.gigabytes(here)} that are here"] if here else []
    told = ", ".join([*parts, f"reserve {runs.gigabytes(reserve)}"])
    free = runs.free_bytes(root)
    if free < missing:
        raise LingossError(
            f"prepare needs {runs.gigabytes(missing)} ({told}), but {root} has {runs.gigabytes(free)} free: "
            f"free {runs.gigabytes(missing - free)} or take a larger volume (or lower disk.reserve_gb)"
        )
    _tell(f"needs {runs.gigabytes(missing)} ({told}); {runs.gigabytes(free)} are free")


def file_system(path: Path) -> tuple[str, str, str]:
    """(type, device, mount point) of the file system that holds `path`, from the kernel's table of mounts."""
    wanted = path.resolve()
    found = ("unknown", "unknown", "/")
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return found
    for line in lines:
        device, point, kind = map(_unescaped, line.split(" ")[:3])
        # A later mount on the same point hides the earlier one.
        if wanted.is_relative_to(point) and len(point) >= len(found[2]):
            found = (kind, device, point)
    return found


def same_file_system(one: Path, other: Path) -> bool:
    """Whether a hard link from one to the other is possible; neither need exist yet."""
    return _existing(one).stat().st_dev == _existing(other).stat().st_dev


def make_folders(root: Path) -> None:
    """Make the folders below the root. LingossError when that is impossible."""
    for name in FOLDERS:
        make_folder(root / name)


def _not_permitted(root: Path, uid: int, gid: int) -> str:
    """Which command gives this process the right; on a fresh Lustre volume everything belongs to root."""
    if not root.is_dir():
        return f"{root} cannot be made by user {uid}: run `mkdir -p {root} && chown {uid}:{gid} {root}` as root"
    found = root.stat()
    return (
        f"{root} belongs to user {found.st_uid}, group {found.st_gid} ({stat.filemode(found.st_mode)}), and user {uid}, "
        f"group {gid} cannot write to it or to a folder in it: run `chown -R {uid}:{gid} {root}` as root, or let the chart "
        "do it once with --set storage.owner.create=true"
    )


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _unescaped(text: str) -> str:
    """The kernel writes a space in a name as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _tell(line: str) -> None:
    print(f"preflight: {line}", flush=True)
