# SPDX-License-Identifier: MIT-0
"""Files, folders and standard input as numbered lines of text, whatever bytes they hold."""

import codecs
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from lingoss.errors import LingossError

WINDOW = 16 << 20
"""Bytes that are searched at once."""
LONGEST = 16 << 10
"""Longer lines are cut into pieces of this length, all with the number of their line."""
_OVERLAP = 512
"""Bytes that a piece repeats of the one before, so that no message is cut in two."""
_CARRY = 60
"""Lines of a window that the next one sees again, as what stands around its first lines."""
_GZIP = b"\x1f\x8b"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class Source:
    """One input. `name` is its path below the folder that all inputs share; `path` is None for standard input."""

    name: str
    path: Path | None


@dataclass
class Window:
    """Pieces of lines: `starts[i]` to `ends[i]` of `data` has the line number `numbers[i]`; the first `seen` are repeated."""

    data: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    seen: int

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, i: int) -> str:
        """A piece as text, without colours; bytes that are no UTF-8 become replacement characters."""
        raw = self.data[self.starts[i] : self.ends[i]].decode("utf-8", "replace")
        return _ANSI.sub("", raw) if "\x1b" in raw else raw


def sources(paths: list[str]) -> list[Source]:
    """The inputs of a command line: files as they are, of folders every file below. `-` is standard input.

    Raises LingossError for a path that is not there, and for folders without any file.
    """
    found: list[Path | None] = []
    for given in paths:
        path = Path(given)
        if given == "-":
            found.append(None)
        elif path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.is_file())
        elif path.exists():
            found.append(path)
        else:
            raise LingossError(f"log {given} is not there: give files, folders or - for standard input")
    if not found:
        raise LingossError(f"no file in {', '.join(paths)}: give the folder that holds the logs")
    unique = list(dict.fromkeys(found))
    return [Source(_short(path, [p for p in unique if p]) if path else "-", path) for path in unique]


def _short(path: Path, others: list[Path]) -> str:
    parents = [other.absolute().parent for other in others]
    shared = parents[0]
    while not all(parent.is_relative_to(shared) for parent in parents):
        shared = shared.parent
    return str(path.absolute().relative_to(shared))


def windows(source: Source) -> Iterator[Window]:
    """The lines of one input, window by window. Raises OSError where it cannot be read."""
    if source.path is None:
        yield from _windows(sys.stdin.buffer)
        return
    with source.path.open("rb") as stream:
        yield from _windows(stream)


def _windows(stream: BinaryIO) -> Iterator[Window]:
    carry, carry_lines, number = b"", 0, 1
    rest = b""
    for chunk in _chunks(stream):
        block = rest + chunk
        # The last line may go on in the next chunk; a very long one is not waited for.
        cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if cut == 0 and len(block) < WINDOW:
            rest = block
            continue
        cut = cut or len(block)
        body, rest = block[:cut], block[cut:]
        window = _window(carry, carry_lines, body, number)
        yield window
        number += body.count(b"\n")
        tail = max(len(window) - _CARRY, 0)
        # A carry begins with a whole line number, so that it is counted from there.
        carry = window.data[window.starts[tail] :] if len(window) else b""
        carry = carry[-_CARRY * LONGEST :] if len(carry) <= _CARRY * LONGEST else b""
        carry_lines = carry.count(b"\n")
    if rest:
        yield _window(carry, carry_lines, rest, number)


def _window(carry: bytes, carry_lines: int, body: bytes, number: int) -> Window:
    data = carry + body
    array = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero((array == 10) | (array == 13)).astype(np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), breaks + 1))
    ends = np.concatenate((breaks, np.array([len(data)], np.int64)))
    newlines = np.concatenate((np.zeros(1, np.int64), np.cumsum(array[breaks] == 10).astype(np.int64)))
    numbers = number - carry_lines + newlines
    full = ends > starts
    starts, ends, numbers = starts[full], ends[full], numbers[full]
    if len(starts) and int((ends - starts).max()) > LONGEST:
        starts, ends, numbers = _cut(starts, ends, numbers)
    return Window(data, starts, ends, numbers, int(np.searchsorted(starts, len(carry))) if carry else 0)


def _cut(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    pieces: list[npt.NDArray[np.int64]] = []
    lengths = ends - starts
    long = np.flatnonzero(lengths > LONGEST)
    before = 0
    for i in map(int, long):
        pieces.append(np.stack((starts[before:i], ends[before:i], numbers[before:i])))
        begins = np.arange(starts[i], ends[i], LONGEST, dtype=np.int64)
        finishes = np.minimum(begins + LONGEST + _OVERLAP, ends[i])
        pieces.append(np.stack((begins, finishes, np.full(len(begins), numbers[i]))))
        before = i + 1
    pieces.append(np.stack((starts[before:], ends[before:], numbers[before:])))
    joined = np.concatenate(pieces, axis=1)
    return joined[0], joined[1], joined[2]


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Pieces of UTF-8 (or nearly): unpacked when it is gzip, converted when a mark at the start says UTF-16."""
    first = stream.read(WINDOW)
    raw = _unpacked(first, stream) if first.startswith(_GZIP) else _rest(first, stream)
    head = next(raw, b"")
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            yield decoder.decode(head[len(mark) :]).encode()
            for chunk in raw:
                yield decoder.decode(chunk).encode()
            return
    if head:
        yield head
    yield from raw


def _rest(first: bytes, stream: BinaryIO) -> Iterator[bytes]:
    chunk = first
    while chunk:
        yield chunk
        chunk = stream.read(WINDOW)


def _unpacked(first: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """What a gzip file holds, member by member; one that is cut off or damaged ends where it is no longer whole."""
    unpacker = zlib.decompressobj(31)
    packed = first
    try:
        while packed:
            plain = unpacker.decompress(packed, WINDOW)
            if plain:
                yield plain
            if unpacker.eof:
                packed = unpacker.unused_data or stream.read(WINDOW)
                unpacker = zlib.decompressobj(31)
            else:
                packed = unpacker.unconsumed_tail or stream.read(WINDOW)
    except zlib.error:
        return
