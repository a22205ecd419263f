# SPDX-License-Identifier: MIT-0
"""Where the parts of sharded tensors lie: names, shapes and digests as plain JSON, so that no pickle is ever read.

A tensor is cut into chunks, boxes that fill it without a gap or an overlap. A chunk is one entry of a safetensors file.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lingoss.checkpoints.tensors import Shapes
from lingoss.errors import LingossError

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")  # a file of the folder itself, never a path out of it


@dataclass(frozen=True, slots=True)
class Chunk:
    """One box of a tensor: the file that holds it, its first corner, its shape, and sha256 of its bytes ("" unknown)."""

    file: str
    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    sha256: str = ""

    def key(self, name: str) -> str:
        """The entry of the file: the tensor's name and the box, as one would write a slice."""
        box = ",".join(f"{start}:{start + size}" for start, size in zip(self.offsets, self.shape, strict=True))
        return f"{name}[{box}]"

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as an index of the whole tensor."""
        return tuple(slice(start, start + size) for start, size in zip(self.offsets, self.shape, strict=True))


@dataclass(frozen=True, slots=True)
class Sharded:
    """A whole tensor: kind of number (as safetensors names it), shape, and the chunks that make it up."""

    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]


Layout = dict[str, Sharded]


def dump(layout: Layout) -> dict[str, Any]:
    """The layout as JSON."""
    return {
        name: {
            "dtype": one.dtype,
            "shape": list(one.shape),
            "chunks": [[c.file, list(c.offsets), list(c.shape), c.sha256] for c in one.chunks],
        }
        for name, one in sorted(layout.items())
    }


def parse(value: Mapping[str, Any]) -> Layout:
    """Read back what `dump` made.

    Raises:
        LingossError: a file outside of the folder is named, or the chunks of a tensor do not fill it exactly.
        LookupError, TypeError, ValueError, AttributeError: it is not of that form.
    """
    layout = {
        str(name): Sharded(
            str(one["dtype"]),
            tuple(map(int, one["shape"])),
            tuple(
                Chunk(str(file), tuple(map(int, offsets)), tuple(map(int, shape)), str(digest))
                for file, offsets, shape, digest in one["chunks"]
            ),
        )
        for name, one in value.items()
    }
    require_whole(layout)
    return layout


def require_whole(layout: Layout) -> None:
    """Refuse with LingossError a layout whose chunks leave a gap, overlap, stick out, or lie outside of the folder."""
    for name, one in layout.items():
        for chunk in one.chunks:
            if not _FILE.fullmatch(chunk.file):
                raise LingossError(f"{name} is said to lie in {chunk.file!r}, which is no file of the checkpoint")
            if not _inside(chunk, one.shape):
                raise LingossError(f"{name}: a part at {list(chunk.offsets)} sticks out of shape {list(one.shape)}")
        if sum(math.prod(chunk.shape) for chunk in one.chunks) != math.prod(one.shape) or _overlap(one.chunks):
            raise LingossError(f"{name}: its {len(one.chunks)} parts do not fill shape {list(one.shape)} exactly")


def by_file(layout: Layout) -> dict[str, Shapes]:
    """File name to the entries that it must have, and their shapes."""
    files: dict[str, Shapes] = {}
    for name, one in layout.items():
        for chunk in one.chunks:
            files.setdefault(chunk.file, {})[chunk.key(name)] = chunk.shape
    return files


def _inside(chunk: Chunk, shape: tuple[int, ...]) -> bool:
    if len(chunk.offsets) != len(shape) or len(chunk.shape) != len(shape):
        return False
    return all(
        first >= 0 and size >= 0 and first + size <= side
        for first, size, side in zip(chunk.offsets, chunk.shape, shape, strict=True)
    )


def _overlap(chunks: tuple[Chunk, ...]) -> bool:
    """Whether two of the boxes share a number. Sorted by their first rows, few pairs have to be looked at."""
    ordered = sorted((chunk for chunk in chunks if math.prod(chunk.shape)), key=lambda chunk: chunk.offsets)
    for at, one in enumerate(ordered):
        for other in ordered[at + 1 :]:
            if not one.shape:
                return True  # a number by itself, held twice
            if other.offsets[0] >= one.offsets[0] + one.shape[0]:
                break
            if all(
                a < b + size and b < a + mine
                for a, mine, b, size in zip(one.offsets, one.shape, other.offsets, other.shape, strict=True)
            ):
                return True
    return False
