# SPDX-License-Identifier: MIT-0
"""The manifest of a checkpoint: sizes and digests of its files and the shapes of its tensors, and the check against it.

`manifest.json`: {step, files: {name: {bytes, sha256}}, and either tensors: {file: {name: shape}} for whole tensors or
sharded: {name: {dtype, shape, chunks: [[file, first corner, shape, sha256]]}} for tensors in parts}.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss.checkpoints import layout as layouts
from lingoss.checkpoints.layout import Layout
from lingoss.checkpoints.tensors import Shapes, first_non_finite, tensor_shapes
from lingoss.errors import LingossError
from lingoss.models import shards

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class BadCheckpoint:
    """A checkpoint that must not be used, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Length and hexadecimal sha256 of a file."""

    bytes: int
    sha256: str


def record(path: Path) -> FileRecord:
    """Describe a file as it can be read back now. OSError when it cannot."""
    with path.open("rb") as stream:
        return FileRecord(os.fstat(stream.fileno()).st_size, hashlib.file_digest(stream, "sha256").hexdigest())


def write_manifest(
    folder: Path, step: int, layout: Layout | None = None, known: Mapping[str, FileRecord] | None = None
) -> None:
    """Describe every file now in `folder`, forcing each to disk. The manifest is the last file of a checkpoint.

    `known` are files that their writers have forced to disk and described already; `layout` says where the parts of
    sharded tensors lie.
    """
    files = dict(known or {})
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in files:
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
            files[name] = record(path)
    described: dict[str, Any] = {
        "step": step,
        "files": {name: {"bytes": one.bytes, "sha256": one.sha256} for name, one in sorted(files.items())},
    }
    if layout is None:
        described["tensors"] = {
            path.name: {name: list(shape) for name, shape in sorted(tensor_shapes(path).items())}
            for path in sorted(folder.glob("*.safetensors"))
        }
    else:
        described["sharded"] = layouts.dump(layout)
    with (folder / MANIFEST).open("w", encoding="utf-8") as out:
        json.dump(described, out, indent=None if layout else 1)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())


def verify(folder: Path, thorough: bool = True) -> dict[str, Any]:
    """The manifest of the checkpoint in `folder`, if everything in it is as it was written.

    Not `thorough` compares names and sizes only; otherwise digests, tensor shapes and finiteness too.

    Raises:
        LingossError: what is missing, cut, changed or not finite.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files, step = manifest["files"], int(manifest["step"])
        wanted = {name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()}
        shapes = _shapes(manifest) if thorough else {}
    except FileNotFoundError:
        raise LingossError("it has no manifest, so it was never finished") from None
    except LingossError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise LingossError(f"its manifest cannot be read ({error})") from error
    if not folder.name.endswith(f"-{step}"):
        raise LingossError(f"its manifest is of step {step}")
    if lost := sorted(shapes.keys() - wanted.keys()):
        raise LingossError(f"its manifest says nothing of the file {lost[0]}")
    for name, (size, digest) in wanted.items():
        try:
            found = (folder / name).stat().st_size
        except OSError:
            raise LingossError(f"{name} is missing") from None
        if found != size:
            raise LingossError(f"{name} has {found} bytes instead of {size}")
        if thorough:
            _check_digest(folder / name, digest)
    for name, expected in shapes.items():
        check_tensors(folder / name, expected)
    if thorough and (layout := layout_of(manifest)) is not None:
        _check_parts(folder, layout)
    return dict(manifest)


def layout_of(manifest: Mapping[str, Any]) -> Layout | None:
    """Where the parts of a sharded checkpoint lie, from what `verify` returned; None for one with whole tensors."""
    return layouts.parse(manifest["sharded"]) if "sharded" in manifest else None


def _shapes(manifest: Mapping[str, Any]) -> dict[str, Shapes]:
    if (layout := layout_of(manifest)) is not None:
        return layouts.by_file(layout)
    return {
        name: {key: tuple(map(int, shape)) for key, shape in entry.items()}
        for name, entry in manifest["tensors"].items()
    }


def check_tensors(path: Path, expected: Shapes) -> None:
    """Compare a safetensors file with the shapes that it must have, and look for values that are not finite.

    Raises:
        LingossError: a tensor is missing, surplus, of another shape, or holds NaN or infinity.
    """
    found = tensor_shapes(path)
    if missing := sorted(expected.keys() - found.keys()):
        raise LingossError(f"{path.name} lacks {len(missing)} of {len(expected)} tensors, first {missing[0]}")
    if surplus := sorted(found.keys() - expected.keys()):
        raise LingossError(f"{path.name} holds {len(surplus)} tensors too many, first {surplus[0]}")
    for name, shape in expected.items():
        if found[name] != shape:
            raise LingossError(f"{path.name}: {name} has shape {list(found[name])} instead of {list(shape)}")
    if bad := first_non_finite(path):
        raise LingossError(f"{path.name}: {bad} is not finite")


def _check_parts(folder: Path, layout: Layout) -> None:
    """Each part against the digest that was taken of it in memory: a load compares that one, so it must agree."""
    files = {name: shards.read_header(folder / name) for name in layouts.by_file(layout)}
    for name, one in layout.items():
        for chunk in one.chunks:
            stored = files[chunk.file][chunk.key(name)]
            found = hashlib.sha256(stored.read(0, stored.spec.size).data).hexdigest()
            if found != chunk.sha256 or stored.spec.dtype != one.dtype:
                raise LingossError(f"{chunk.file}: {chunk.key(name)} is not what the manifest says")


def _check_digest(path: Path, digest: str) -> None:
    try:
        found = record(path).sha256
    except OSError as error:
        raise LingossError(f"{path.name} cannot be read ({error.strerror or error})") from error
    if found != digest:
        raise LingossError(f"{path.name} has changed since it was written")
