# SPDX-License-Identifier: MIT-0
"""The manifest of a checkpoint: sizes and digests of its files and the shapes of its tensors, and the check against it."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss.checkpoints.tensors import Shapes, first_non_finite, tensor_shapes
from lingoss.errors import LingossError

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class BadCheckpoint:
    """A checkpoint that must not be used, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path.name}: {self.reason}"


def write_manifest(folder: Path, step: int) -> None:
    """Describe every file now in `folder`, forcing each to disk. The manifest is the last file of a checkpoint."""
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        files[path.relative_to(folder).as_posix()] = {"bytes": path.stat().st_size, "sha256": digest}
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors[path.name] = {name: list(shape) for name, shape in sorted(tensor_shapes(path).items())}
    with (folder / MANIFEST).open("w", encoding="utf-8") as out:
        json.dump({"step": step, "files": files, "tensors": tensors}, out, indent=1)
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
        files, tensors, step = manifest["files"], manifest["tensors"], int(manifest["step"])
        wanted = {name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in files.items()}
        shapes = {name: {key: tuple(shape) for key, shape in entry.items()} for name, entry in tensors.items()}
    except FileNotFoundError:
        raise LingossError("it has no manifest, so it was never finished") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise LingossError(f"its manifest cannot be read ({error})") from error
    if not folder.name.endswith(f"-{step}"):
        raise LingossError(f"its manifest is of step {step}")
    for name, (size, digest) in wanted.items():
        try:
            found = (folder / name).stat().st_size
        except OSError:
            raise LingossError(f"{name} is missing") from None
        if found != size:
            raise LingossError(f"{name} has {found} bytes instead of {size}")
        if thorough:
            _check_digest(folder / name, digest)
    if thorough:
        for name, expected in shapes.items():
            check_tensors(folder / name, expected)
    return dict(manifest)


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


def _check_digest(path: Path, digest: str) -> None:
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise LingossError(f"{path.name} cannot be read ({error.strerror or error})") from error
    if found != digest:
        raise LingossError(f"{path.name} has changed since it was written")
