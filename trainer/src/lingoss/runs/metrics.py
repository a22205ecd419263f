# SPDX-License-Identifier: MIT-0
"""`metrics.jsonl`: one JSON object a line, appended as training goes, cut back when a run resumes at an older step."""

import json
import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lingoss.runs.files import TEMPORARY, sync_folder, write_all, writing

SYNC = 5.0  # seconds between fsyncs: a killed process loses no row, a lost machine at most these seconds of rows
_CHUNK = 1 << 16


class Metrics:
    """Appends rows to a file. A torn last line (from a kill in mid-write) is dropped before the first new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._synced = 0.0

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row, visible to other processes at once. Non-finite numbers become "nan", "inf" and "-inf".

        Raises LingossError on a full disk; the file then ends with the last whole row.
        """
        data = (json.dumps(_plain(row), ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
        with writing(self._path):
            descriptor = self._open()
            end = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, data)
            except OSError:
                os.ftruncate(descriptor, end)
                raise
            if time.monotonic() - self._synced >= SYNC:
                self.sync()

    def sync(self) -> None:
        """Make all rows so far survive a power cut. Raises OSError."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and close; the next append opens again. Raises LingossError on a full disk."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with writing(self._path):
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def truncate(self, step: int) -> None:
        """Remove rows whose `step` is above `step`, and a torn last line. Lines that are no rows stay."""
        self.close()
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}{TEMPORARY}")
        with writing(self._path):
            if not self._path.exists():
                return
            changed = False
            try:
                with self._path.open("rb") as old, temporary.open("xb") as new:
                    for line in old:
                        if line.endswith(b"\n") and not _is_above(line, step):
                            new.write(line)
                        else:
                            changed = True
                    new.flush()
                    os.fsync(new.fileno())
                if changed:
                    os.replace(temporary, self._path)
                    sync_folder(self._path.parent)
            finally:
                temporary.unlink(missing_ok=True)

    def _open(self) -> int:
        if self._descriptor is None:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            _drop_torn_end(descriptor)
            self._descriptor = descriptor
        return self._descriptor


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a metrics file or of the one in a run folder; missing: none. Torn and malformed lines are skipped."""
    try:
        file = (path / "metrics.jsonl" if path.is_dir() else path).open("rb")
    except OSError:
        return
    with file:
        for line in file:
            row = _row(line)
            if row is not None and line.endswith(b"\n"):
                yield row


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _is_above(line: bytes, step: int) -> bool:
    found = (_row(line) or {}).get("step")
    return isinstance(found, int | float) and found > step


def _drop_torn_end(descriptor: int) -> None:
    """Cut a file back to its last newline, reading only as much of its end as needed."""
    end = os.fstat(descriptor).st_size
    position = end
    while position > 0:
        start = max(0, position - _CHUNK)
        newline = os.pread(descriptor, position - start, start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position = start
    if position != end:
        os.ftruncate(descriptor, position)


def _plain(value: Any) -> Any:
    """JSON values of a metrics row: numbers of numpy and torch as Python's, anything unknown as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    item = getattr(value, "item", None)
    if callable(item):
        try:
            return _plain(item())
        except (ValueError, RuntimeError):  # more than one element
            pass
    return str(value)
