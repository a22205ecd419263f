# SPDX-License-Identifier: MIT-0
"""safetensors files, read and written piece by piece with numpy alone: no file is ever held in memory whole.

Format: an 8-byte little-endian length, that many bytes of JSON, then the data (huggingface/safetensors).
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lingoss.errors import LingossError

WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Bytes of one number, by the format's name for its kind."""
_HEADER_LIMIT = 100_000_000  # as safetensors itself


@dataclass(frozen=True, slots=True)
class Spec:
    """Kind of number (a key of `WIDTH`, or one that we do not know) and shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes. LingossError for a kind of number that we do not know."""
        if self.dtype not in WIDTH:
            raise LingossError(f"numbers of kind {self.dtype} cannot be converted: take a model in bfloat16 or MXFP4")
        return math.prod(self.shape) * WIDTH[self.dtype]


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in a file, `start` bytes from its beginning."""

    spec: Spec
    file: Path
    start: int

    def read(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        """`count` bytes of the tensor from byte `first`."""
        found = np.fromfile(self.file, np.uint8, count, offset=self.start + first)
        if len(found) != count:
            raise LingossError(f"{self.file} became shorter while it was read: fetch it again")
        return found


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """Every tensor in the safetensors files of a folder.

    Raises:
        LingossError: there is none, a file is cut short or damaged, or two files hold a tensor of one name.
    """
    found: dict[str, Stored] = {}
    for path in sorted(folder.glob("*.safetensors")):
        for name, tensor in read_header(path).items():
            if name in found:
                raise LingossError(f"{name} is in {found[name].file.name} and in {path.name}: remove one of the files")
            found[name] = tensor
    if not found:
        raise LingossError(f"{folder} holds no weights (*.safetensors): give the folder of a model")
    return found


def read_header(path: Path) -> dict[str, Stored]:
    """The tensors in one safetensors file. LingossError when it is cut short or damaged, OSError when not readable."""
    size = path.stat().st_size
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length)) if length <= min(size, _HEADER_LIMIT) else None
        entries: dict[str, Any] = {key: value for key, value in header.items() if key != "__metadata__"}  # type: ignore[union-attr]
        found = {
            name: Stored(
                Spec(str(one["dtype"]), tuple(map(int, one["shape"]))), path, 8 + length + one["data_offsets"][0]
            )
            for name, one in entries.items()
        }
        end = 8 + length + max((one["data_offsets"][1] for one in entries.values()), default=0)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise LingossError(f"{path} is no safetensors file: its header is damaged; fetch it again") from error
    if end != size:
        raise LingossError(f"{path} has {size} bytes, but its header promises {end}: it was cut short; fetch it again")
    return found


def header(specs: Mapping[str, Spec]) -> bytes:
    """The beginning of a file that holds these tensors in this order."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # transformers refuses files without it
    end = 0
    for name, spec in specs.items():
        entries[name] = {"dtype": spec.dtype, "shape": list(spec.shape), "data_offsets": [end, end + spec.size]}
        end += spec.size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    return len(text).to_bytes(8, "little") + text


def is_complete(path: Path, specs: Mapping[str, Spec]) -> bool:
    """Whether `path` is a whole file of these tensors, by its header and its length."""
    start = header(specs)
    try:
        with path.open("rb") as stream:
            return stream.read(len(start)) == start and path.stat().st_size == len(start) + total_size(specs)
    except FileNotFoundError:
        return False


def write(path: Path, specs: Mapping[str, Spec], pieces: Iterable[npt.NDArray[Any]]) -> None:
    """Write a file of these tensors; `pieces` are their numbers, one tensor after the other. It appears whole."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as stream:
        start = header(specs)
        stream.write(start)
        for piece in pieces:
            stream.write(np.ascontiguousarray(piece).data)
        stream.flush()
        if stream.tell() != len(start) + total_size(specs):
            raise AssertionError(
                f"{path.name}: {stream.tell()} bytes written, {len(start) + total_size(specs)} planned"
            )
        os.fsync(stream.fileno())
    os.replace(partial, path)


def total_size(specs: Mapping[str, Spec]) -> int:
    """Bytes of all tensors."""
    return sum(spec.size for spec in specs.values())


def in_shards(specs: Mapping[str, Spec], most: int) -> dict[str, dict[str, Spec]]:
    """File name to its tensors, in the given order, at most `most` bytes a file (more for one larger tensor)."""
    groups: list[dict[str, Spec]] = []
    room = 0
    for name, spec in specs.items():
        if not groups or spec.size > room:
            groups.append({})
            room = most
        groups[-1][name] = spec
        room -= spec.size
    if len(groups) == 1:
        return {"model.safetensors": groups[0]}
    return {f"model-{number:05d}-of-{len(groups):05d}.safetensors": one for number, one in enumerate(groups, 1)}


def spans(size: int, most: int) -> Iterator[tuple[int, int]]:
    """(first, count) that cover `size` bytes in pieces of at most `most`."""
    for first in range(0, size, most):
        yield first, min(most, size - first)


def index(shards: Mapping[str, Mapping[str, Spec]]) -> str:
    """The text of `model.safetensors.index.json`."""
    weight_map = {name: file for file, specs in shards.items() for name in specs}
    total = sum(map(total_size, shards.values()))
    return json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2) + "\n"
