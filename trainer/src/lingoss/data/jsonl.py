# SPDX-License-Identifier: MIT-0
"""JSON lines: a reader in which a bad line is a row of its own, and a writer that survives a kill at any moment."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NoReturn, cast

from lingoss.errors import LingossError

Row = dict[str, Any]

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no JSON object. `error` says why; the line itself is still in the file under its number."""

    line: int
    error: str

    def to_dict(self) -> Row:
        """The error row that commands write in its place."""
        return {"line": self.line, "error": self.error}


def read(path: Path | str) -> Iterator[tuple[int, Row | BadLine]]:
    """Yield (line number from 1, row or `BadLine`) for each line that is not blank; `-` reads standard input.

    A byte order mark, CRLF, lone surrogates in escapes and lines of many megabytes are read. NaN and Infinity are no
    JSON, and a raw NUL has no place in a string, so such lines are bad. A last line without line break is a row if it
    is whole, and is called torn if it is not.

    Raises:
        LingossError: the file cannot be opened or read.
    """
    if str(path) == "-":
        yield from _lines(sys.stdin.buffer)
        return
    try:
        with Path(path).open("rb") as stream:
            yield from _lines(stream)
    except OSError as error:
        raise LingossError(f"cannot read {path}: {error.strerror or error}") from error


def string(row: Row, key: str, where: str = "") -> str:
    """The string under `key`; `where` is what stands before the key in the error ("request.").

    Raises:
        LingossError: the key is missing or holds something else.
    """
    value = row.get(key)
    if isinstance(value, str):
        return value
    found = "is missing" if key not in row else f"must be a string, not {type(value).__name__}"
    raise LingossError(f"`{where}{key}` {found}")


def mapped(rows: Iterable[tuple[int, Row | BadLine]], work: Callable[[Row], Row]) -> Iterator[tuple[bool, Row]]:
    """(usable?, `work` of each row). A bad line, or a row that `work` refuses, becomes an error row; the rest goes on."""
    for number, row in rows:
        if isinstance(row, BadLine):
            yield False, row.to_dict()
            continue
        try:
            yield True, work(row)
        except LingossError as error:
            yield False, {**row, "line": number, "error": str(error)}


def keys(path: Path | str, *fields: str) -> set[tuple[Any, ...]]:
    """The values of `fields` in every row that has all of them: what a resumed run need not do again.

    A file that is not there has none.
    """
    if not Path(path).exists():
        return set()
    rows = (row for _, row in read(path) if not isinstance(row, BadLine))
    return {tuple(row[field] for field in fields) for row in rows if all(field in row for field in fields)}


def dumps(row: Row) -> str:
    """One row as one line, without its line break. Readable UTF-8, but lone surrogates stay escaped.

    Raises:
        LingossError: the row holds something that JSON has no form for, such as NaN.
    """
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(row, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise LingossError(f"this row cannot be written as JSON: {error}; its keys: {_shown(row)}") from error
    return text


def write(path: Path | str, rows: Iterable[Row]) -> int:
    """Write a whole file, replacing it only once it is complete. Returns the number of rows.

    Raises:
        LingossError: the folder cannot be written to, or the disk is full; the old file then stays as it was.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    count = 0
    try:
        with part.open("wb") as stream:
            for row in rows:
                stream.write((dumps(row) + "\n").encode())
                count += 1
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as error:
        raise LingossError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        # Whatever stopped us, Ctrl-C included, leaves no half file behind.
        if part.exists():
            part.unlink()
    return count


class Writer:
    """Appends rows to a file, each line whole or not there at all.

    On opening, a torn last line (left by a kill or a full disk) is dropped; one that only lacks its line break is
    completed. `sync_every` rows are made safe by one fsync; `sync` does it at once, and so does closing.

    Raises:
        LingossError: the file cannot be opened, or a row cannot be written; then the file ends with the row before.
    """

    def __init__(self, path: Path | str, sync_every: int = 1) -> None:
        self.path = Path(path)
        self._sync_every, self._unsynced = sync_every, 0
        try:
            # Unbuffered, so that a row reaches the file in one system call and no half of it waits in memory.
            self._stream = cast(BinaryIO, self.path.open("ab+", buffering=0))
            self._size = _mend_tail(self._stream)
        except OSError as error:
            raise LingossError(f"cannot append to {path}: {error.strerror or error}") from error

    def write(self, row: Row) -> None:
        """Append one row."""
        data = (dumps(row) + "\n").encode()
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._stream.write(rest) :]
        except BaseException as error:
            self._stream.truncate(self._size)
            if isinstance(error, OSError):
                raise LingossError(f"cannot append to {self.path}: {error.strerror or error}") from error
            raise
        self._size += len(data)
        self._unsynced += 1
        if self._unsynced >= self._sync_every:
            self.sync()

    def sync(self) -> None:
        """Make every row so far safe on the disk."""
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise LingossError(f"cannot append to {self.path}: {error.strerror or error}") from error
        self._unsynced = 0

    def close(self) -> None:
        """Sync and close; a second call does nothing."""
        if not self._stream.closed:
            self.sync()
            self._stream.close()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _lines(stream: BinaryIO) -> Iterator[tuple[int, Row | BadLine]]:
    for number, line in enumerate(stream, 1):
        if number == 1:
            line = line.removeprefix(_BOM)
        if not line.strip():
            continue
        row = _parse(line)
        if isinstance(row, str):
            torn = "" if line.endswith(b"\n") else "; the line has no end, so it was probably cut while being written"
            yield number, BadLine(number, row + torn)
        else:
            yield number, row


def _parse(line: bytes) -> Row | str:
    """The row, or why the line is none."""
    try:
        value = json.loads(line.decode(), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error.reason} at byte {error.start}"
    except RecursionError:
        return "not JSON: nested too deeply"
    except ValueError as error:
        return f"not JSON: {error}"
    if not isinstance(value, dict):
        return f"expected a JSON object, found {type(value).__name__}"
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _mend_tail(stream: BinaryIO) -> int:
    """Drop a torn last line or end a whole one; returns the size of the file in bytes."""
    size = stream.seek(0, os.SEEK_END)
    start = _last_line_start(stream, size)
    if start == size:
        return size
    stream.seek(start)
    if isinstance(_parse(_read_all(stream, size - start).removeprefix(_BOM if start == 0 else b"")), dict):
        stream.write(b"\n")
        return size + 1
    stream.truncate(start)
    return start


def _last_line_start(stream: BinaryIO, size: int, step: int = 1 << 16) -> int:
    """Where the text after the last line break starts: `size` when the file ends with one, 0 when it has none."""
    end = size
    while end > 0:
        begin = max(0, end - step)
        stream.seek(begin)
        found = _read_all(stream, end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _read_all(stream: BinaryIO, count: int) -> bytes:
    """Exactly `count` bytes, fewer only at the end: a raw file may return less than it is asked for."""
    parts = []
    while count > 0 and (part := stream.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _shown(row: object) -> str:
    return ", ".join(map(str, row))[:200] if isinstance(row, dict) else type(row).__name__
