# SPDX-License-Identifier: MIT-0
"""Shapes and finiteness of the tensors in safetensors files. Headers are read without torch."""

import json
from pathlib import Path

from lingoss.errors import LingossError

_HEADER_LIMIT = 1 << 27  # safetensors itself refuses headers above 100 MB

Shapes = dict[str, tuple[int, ...]]


def tensor_shapes(path: Path) -> Shapes:
    """Name to shape of every tensor in a safetensors file, or in all such files of a folder.

    Format: an 8-byte little-endian length, that many bytes of JSON, then the data (huggingface/safetensors).

    Raises:
        LingossError: there is no such file, or one is cut short or damaged.
    """
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files:
        raise LingossError(f"{path} holds no *.safetensors")
    return {name: shape for file in files for name, shape in _file_shapes(file).items()}


def _file_shapes(path: Path) -> Shapes:
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length)) if length <= min(size, _HEADER_LIMIT) else None
    except OSError as error:
        raise LingossError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise LingossError(f"{path.name} is no safetensors file: its header is damaged") from error
    try:
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}  # type: ignore[union-attr]
        end = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        shapes = {name: tuple(int(side) for side in entry["shape"]) for name, entry in entries.items()}
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise LingossError(f"{path.name} is no safetensors file: its header is damaged") from error
    if end != size:
        raise LingossError(f"{path.name} has {size} bytes, its header promises {end}: it was cut or overwritten")
    return shapes


def first_non_finite(path: Path) -> str | None:
    """The name of the first tensor in a safetensors file that holds NaN or infinity; None when all are finite."""
    import torch
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name)
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                return str(name)
    return None
