# SPDX-License-Identifier: MIT-0
"""Files that others read while they are written: atomic writes, tolerant reads, and disk errors in plain words."""

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lingoss.errors import LingossError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
TEMPORARY = ".tmp"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError inside into a LingossError that names the path and what to do."""
    try:
        yield
    except OSError as error:
        raise LingossError(_reason(error, path)) from error


def _reason(error: OSError, path: Path) -> str:
    if error.errno in _NO_SPACE:
        left = ""
        with contextlib.suppress(LingossError):
            left = f" ({gigabytes(free_bytes(path))} free)"
        return (
            f"no space left{left} while writing {path}: free some, for example the checkpoints/ of finished runs, and "
            "start again; what was complete before is untouched"
        )
    if error.errno in _READ_ONLY:
        user = f" by user {os.getuid()}" if hasattr(os, "getuid") else ""
        return f"{path} is not writable{user} ({error.strerror}): give write permission, or choose another root"
    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        return f"{path} is in the way or below something that is no folder ({error.strerror}): choose another root"
    return f"cannot write {path}: {error.strerror or error}"


def make_folder(path: Path) -> None:
    """Create a folder and its parents. LingossError when that is impossible."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file so that every reader, at any moment and after a crash, sees the old or the new one whole.

    The folder must exist. Raises LingossError on a full disk or a read-only folder; the old file then stays.
    """
    write_text(path, json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """As `write_json`, in UTF-8."""
    # A name of its own for each write: a second writer (after a takeover) must never share a half-written file.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{TEMPORARY}")
    with writing(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                write_all(descriptor, text.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
            sync_folder(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def write_all(descriptor: int, data: bytes) -> None:
    """`os.write` until everything is written; a full disk may take a part first."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(path: Path) -> None:
    """Make a rename in `path` survive a power cut, where the file system offers that."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems refuse to sync a folder; the rename itself has happened.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:
            raise
    finally:
        os.close(descriptor)


def read_json(path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """(object, None); (None, problem) when the file holds no readable JSON object; (None, None) when it is absent."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return None, f"{path.name} cannot be read ({error.strerror})"
    except (ValueError, RecursionError):
        return None, f"{path.name} is not valid JSON"
    return (value, None) if isinstance(value, dict) else (None, f"{path.name} is not a JSON object")


def remove_temporaries(folder: Path) -> None:
    """Delete what a killed process left of an atomic write. Only for the holder of the folder's lock."""
    for path in folder.glob(f".*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            path.unlink()


def free_bytes(path: Path) -> int:
    """Bytes that may still be written below `path`, which need not exist yet. LingossError when no parent exists."""
    for folder in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(folder).free
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LingossError(f"cannot ask for the free space of {folder}: {error.strerror}") from error
    raise LingossError(f"{path} has no existing parent folder: choose another root")


def folder_size(path: Path) -> int:
    """Bytes of all files below a folder; 0 where there is none. Files that vanish or cannot be read meanwhile count as
    nothing."""
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return size


def require_space(path: Path, needed: int, what: str) -> None:
    """Refuse with LingossError when fewer than `needed` bytes are free below `path`. `what` is the subject: "SFT"."""
    free = free_bytes(path)
    if free < needed:
        raise LingossError(
            f"{what} needs {gigabytes(needed)}, but {path} has {gigabytes(free)} free: free {gigabytes(needed - free)} "
            "(the checkpoints/ of finished runs are no longer needed), or choose another root"
        )


def gigabytes(size: int) -> str:
    """A number of bytes for people; decimal units, as disks are sold and Kubernetes counts G."""
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
