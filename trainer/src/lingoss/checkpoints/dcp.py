# SPDX-License-Identifier: MIT-0
"""Folders that other trainers write with torch.distributed.checkpoint (accelerate's `pytorch_model_fsdp_0`).

Their index, `.metadata`, is a pickle, which could run anything. Here it is read by an unpickler that knows the eight
or so classes of which the library makes it and nothing else; the numbers are read with `weights_only`. Imports torch.
"""

import collections
import io
import pathlib
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import filesystem, metadata

from lingoss.checkpoints.layout import Chunk, Layout, Sharded, require_whole
from lingoss.checkpoints.sharded import KINDS, Read
from lingoss.errors import LingossError

METADATA = ".metadata"
_LIMIT = 1 << 30  # bytes of an index; one of a 20B adapter has a few hundred kilobytes

# Everything that an index of torch 2.3 to 2.11 is made of (`state_dict_saver`, `filesystem`, `metadata`).
_ALLOWED: Mapping[tuple[str, str], Any] = {
    ("torch.distributed.checkpoint.metadata", "Metadata"): metadata.Metadata,
    ("torch.distributed.checkpoint.metadata", "MetadataIndex"): metadata.MetadataIndex,
    ("torch.distributed.checkpoint.metadata", "TensorStorageMetadata"): metadata.TensorStorageMetadata,
    ("torch.distributed.checkpoint.metadata", "BytesStorageMetadata"): metadata.BytesStorageMetadata,
    ("torch.distributed.checkpoint.metadata", "ChunkStorageMetadata"): metadata.ChunkStorageMetadata,
    ("torch.distributed.checkpoint.metadata", "TensorProperties"): metadata.TensorProperties,
    ("torch.distributed.checkpoint.metadata", "StorageMeta"): metadata.StorageMeta,
    ("torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING"): metadata._MEM_FORMAT_ENCODING,
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): filesystem._StorageInfo,
    ("torch", "Size"): torch.Size,
    ("torch.serialization", "_get_layout"): torch.serialization._get_layout,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("pathlib", "PosixPath"): pathlib.PurePosixPath,  # where it was saved: only looked at, never opened
    ("pathlib", "PurePosixPath"): pathlib.PurePosixPath,
    **{("torch", str(dtype).removeprefix("torch.")): dtype for dtype in KINDS},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Only what an index needs."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise LingossError(
                f"{METADATA} asks for {module}.{name}, which no index of a checkpoint needs: it may be malicious and "
                "was not loaded"
            ) from None


def read_dcp(folder: Path) -> tuple[Layout, Read]:
    """The tensors of such a folder, and how to read their chunks. Objects other than tensors are left out.

    Raises:
        LingossError: the index is missing, damaged, or asks for something that an index never needs; a file is
            missing or cut; an entry is compressed.
    """
    index = _index(folder)
    try:
        places = dict(index.storage_data)
        layout: Layout = {}
        for name, one in index.state_dict_metadata.items():
            if isinstance(one, metadata.TensorStorageMetadata):
                kind = KINDS.get(one.properties.dtype)
                if kind is None:
                    raise LingossError(f"{name} has numbers of kind {one.properties.dtype}, which is not supported")
                chunks = tuple(
                    Chunk(_file(places, name, box), tuple(box.offsets), tuple(box.sizes))
                    for box in one.chunks
                    if all(box.sizes)
                )
                layout[str(name)] = Sharded(kind, tuple(one.size), chunks)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise LingossError(f"{folder / METADATA} is damaged: {error}") from error
    require_whole(layout)

    def read(name: str, chunk: Chunk) -> torch.Tensor:
        place = places[metadata.MetadataIndex(name, chunk.offsets)]
        return _read(folder / chunk.file, int(place.offset), int(place.length), name, chunk, layout[name].dtype)

    return layout, read


def _index(folder: Path) -> metadata.Metadata:
    path = folder / METADATA
    try:
        if path.stat().st_size > _LIMIT:
            raise LingossError(f"{path} has {path.stat().st_size} bytes, which is no index of a checkpoint")
        with path.open("rb") as stream:
            index = _Unpickler(stream).load()
    except FileNotFoundError:
        raise LingossError(f"{folder} has no {METADATA}: it is no whole checkpoint of torch.distributed") from None
    except LingossError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise LingossError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    if not isinstance(index, metadata.Metadata):
        raise LingossError(f"{path} is no index of a checkpoint")
    return index


def _file(places: Mapping[Any, Any], name: str, box: metadata.ChunkStorageMetadata) -> str:
    place = places[metadata.MetadataIndex(name, box.offsets)]
    if getattr(place, "transform_descriptors", None):
        raise LingossError(f"{name} is stored with {', '.join(place.transform_descriptors)}, which is not supported")
    # The library calls its files `__0_0.distcp`; as a chunk's file it must not look like a path.
    return str(place.relative_path)


def _read(path: Path, offset: int, length: int, name: str, chunk: Chunk, kind: str) -> torch.Tensor:
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            raw = stream.read(length)
    except FileNotFoundError:
        raise LingossError(f"{path.name} is missing") from None
    if len(raw) != length:
        raise LingossError(f"{path.name} is cut short: {name} needs {length} bytes at {offset}")
    try:
        tensor = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged archive may raise anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise LingossError(f"{path.name}: {name} cannot be read: {first}") from error
    if not isinstance(tensor, torch.Tensor) or tuple(tensor.shape) != chunk.shape or KINDS.get(tensor.dtype) != kind:
        raise LingossError(f"{path.name}: what is stored for {name} is not {kind} {list(chunk.shape)}")
    return tensor
