# SPDX-License-Identifier: MIT-0
"""torch.distributed.checkpoint with our own storage: one safetensors file a rank, and JSON in place of its pickle.

The library plans who writes and reads which box of a tensor (replicated tensors once, resharding to any number of
ranks) and makes one rank's failure every rank's. What reaches the disk, and what is believed of it, is decided here.
Imports torch, so it is imported only where tensors are handled.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import CheckpointException, StorageReader, StorageWriter
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict
from torch.distributed.checkpoint.state_dict_saver import _save_state_dict
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from lingoss.checkpoints.layout import Chunk, Layout, Sharded, require_whole
from lingoss.checkpoints.manifest import FileRecord, record
from lingoss.errors import LingossError
from lingoss.models import shards

KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names of number formats in safetensors files."""
TYPES = {kind: dtype for dtype, kind in KINDS.items()}

Read = Callable[[str, Chunk], torch.Tensor]
"""Brings one chunk of the tensor of that name, on the CPU, in the chunk's shape."""


@dataclass(frozen=True, slots=True)
class _Written:
    chunk: Chunk
    record: FileRecord


def as_bytes(tensor: torch.Tensor) -> Any:
    """A tensor's numbers as a flat array of bytes (numpy), in the order in which they are stored."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()


def digest(tensor: torch.Tensor) -> str:
    """sha256 of a tensor's bytes."""
    return hashlib.sha256(as_bytes(tensor)).hexdigest()


def as_tensor(stored: shards.Stored) -> torch.Tensor:
    """A whole tensor out of a file. LingossError when its numbers are of a kind that is not supported."""
    if stored.spec.dtype not in TYPES:
        raise LingossError(f"{stored.file} holds numbers of kind {stored.spec.dtype}, which is not supported")
    raw = torch.from_numpy(stored.read(0, stored.spec.size))
    return raw.view(TYPES[stored.spec.dtype]).reshape(stored.spec.shape)


def save(
    tensors: Mapping[str, torch.Tensor],
    folder: Path,
    begin: Callable[[], None],
    publish: Callable[[Layout, Mapping[str, FileRecord]], None],
) -> None:
    """Write `tensors` (whole, replicated or DTensor) into `folder`. Every rank of the default group calls it.

    Rank 0 calls `begin`, which makes the folder, before anybody writes, and `publish` when every rank has written its
    file, forced it to disk and read it back unchanged. Without a process group it works alone.

    Raises:
        LingossError: on every rank, when one of them failed. `folder` is then left for rank 0 to remove.
    """
    alone = not torch.distributed.is_initialized()
    try:
        _save_state_dict(
            dict(tensors),
            _Writer(folder, begin, publish),
            no_dist=alone,
            planner=DefaultSavePlanner(flatten_state_dict=False),
        )
    except CheckpointException as error:
        raise _first_failure(error) from None


def load(tensors: dict[str, torch.Tensor], layout: Layout, read: Read) -> None:
    """Fill `tensors` in place, however each is distributed now. Every rank reads its own parts; nothing is sent.

    Raises:
        LingossError: a tensor is not stored, or in another shape or number format, or cannot be read.
    """
    for name, tensor in tensors.items():
        stored = layout.get(name)
        if stored is None:
            raise LingossError(f"the checkpoint does not hold {name}")
        if (stored.shape, stored.dtype) != (tuple(tensor.shape), KINDS.get(tensor.dtype)):
            raise LingossError(
                f"{name} is {stored.dtype} {list(stored.shape)} in the checkpoint and "
                f"{KINDS.get(tensor.dtype)} {list(tensor.shape)} in the model"
            )
    try:
        _load_state_dict(
            tensors, _Reader(layout, read), no_dist=True, planner=DefaultLoadPlanner(flatten_state_dict=False)
        )
    except CheckpointException as error:
        raise _first_failure(error) from None


def stored_reader(folder: Path) -> Read:
    """Reads chunks from the files of a sharded checkpoint; each must have the digest that was taken before writing."""
    files: dict[str, Mapping[str, shards.Stored]] = {}

    def read(name: str, chunk: Chunk) -> torch.Tensor:
        if chunk.file not in files:
            files[chunk.file] = shards.read_header(folder / chunk.file)
        try:
            stored = files[chunk.file][chunk.key(name)]
        except KeyError:
            raise LingossError(f"{chunk.file} does not hold {chunk.key(name)}") from None
        raw = stored.read(0, stored.spec.size)
        if stored.spec.shape != chunk.shape or hashlib.sha256(raw.data).hexdigest() != chunk.sha256:
            raise LingossError(f"{chunk.file}: {chunk.key(name)} is not what was saved")
        return torch.from_numpy(raw).view(TYPES[stored.spec.dtype]).reshape(chunk.shape)

    return read


class _Writer(StorageWriter):
    def __init__(
        self,
        folder: Path,
        begin: Callable[[], None],
        publish: Callable[[Layout, Mapping[str, FileRecord]], None],
    ) -> None:
        self._folder, self._begin, self._publish = folder, begin, publish
        self._coordinator = False

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Nothing is kept from one save to the next."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """The folder is given to the constructor."""
        return True

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Rank 0 makes the folder: every rank writes only after it has answered with the plan."""
        if is_coordinator:
            self._begin()

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """As the planner made it."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each rank the name of its file."""
        return [
            SavePlan(plan.items, f"shard-{rank:05d}-of-{len(plans):05d}.safetensors", plan.planner_data, plan.usable)
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this rank's file, force it to disk, and read it back."""
        file = str(plan.storage_data)
        chunks: dict[str, tuple[MetadataIndex, Chunk, torch.Tensor]] = {}
        for item in plan.items:
            tensor = planner.resolve_data(item)
            if item.tensor_data is None or not isinstance(tensor, torch.Tensor) or tensor.dtype not in KINDS:
                raise LingossError(f"{item.index.fqn} is no tensor of ordinary numbers, so it cannot be saved")
            box = item.tensor_data.chunk
            if not tensor.numel():  # more ranks than rows
                continue
            tensor = tensor.detach().cpu()
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise LingossError(f"{item.index.fqn} is not finite")
            chunk = Chunk(file, tuple(box.offsets), tuple(box.sizes), digest(tensor))
            chunks[chunk.key(item.index.fqn)] = (item.index, chunk, tensor)
        results = []
        if chunks:
            written = self._write(file, {key: (chunk, tensor) for key, (_, chunk, tensor) in chunks.items()})
            results = [
                WriteResult(index, tensor.nbytes, _Written(chunk, written)) for index, chunk, tensor in chunks.values()
            ]
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def _write(self, file: str, chunks: Mapping[str, tuple[Chunk, torch.Tensor]]) -> FileRecord:
        path = self._folder / file
        specs = {key: shards.Spec(KINDS[tensor.dtype], chunk.shape) for key, (chunk, tensor) in chunks.items()}
        shards.write(path, specs, (as_bytes(tensor) for _, tensor in chunks.values()))
        path.chmod(0o644)
        for key, stored in shards.read_header(path).items():
            found = hashlib.sha256(stored.read(0, stored.spec.size).data).hexdigest()
            if found != chunks[key][0].sha256:
                raise LingossError(f"{file}: {key} was not written faithfully; is the disk failing?")
        return record(path)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """On rank 0, after every rank has written: put the layout together and publish."""
        chunks: dict[str, list[Chunk]] = {}
        files: dict[str, FileRecord] = {}
        for written in (one for rank in results for one in rank):
            held: _Written = written.storage_data
            chunks.setdefault(written.index.fqn, []).append(held.chunk)
            files[held.chunk.file] = held.record
        layout = {}
        for name, described in metadata.state_dict_metadata.items():
            if not isinstance(described, TensorStorageMetadata):
                raise LingossError(f"{name} is no tensor, so it cannot be saved")
            ordered = tuple(sorted(chunks.get(name, ()), key=lambda chunk: chunk.offsets))
            layout[name] = Sharded(KINDS[described.properties.dtype], tuple(described.size), ordered)
        require_whole(layout)
        self._publish(layout, files)


class _Reader(StorageReader):
    def __init__(self, layout: Layout, read: Read) -> None:
        self._layout, self._read = layout, read

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Nothing is kept from one load to the next."""

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """The source is given to the constructor."""
        return True

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The layout in the library's words."""
        described: dict[str, Any] = {}
        for name, one in self._layout.items():
            boxes = [ChunkStorageMetadata(torch.Size(c.offsets), torch.Size(c.shape)) for c in one.chunks]
            described[name] = TensorStorageMetadata(TensorProperties(TYPES[one.dtype]), torch.Size(one.shape), boxes)
        return Metadata(described)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing to prepare."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """As the planner made it."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """As the planner made it."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Copy the boxes that this rank needs into its tensors."""
        for item in plan.items:
            chunk = self._chunk(item.storage_index)
            part = self._read(item.storage_index.fqn, chunk)
            for side, (first, size) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
                part = part.narrow(side, first, size)
            target = planner.resolve_tensor(item).detach()
            target.copy_(part)
            planner.commit_tensor(item, target)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _chunk(self, index: MetadataIndex) -> Chunk:
        offsets = tuple(index.offset or ())
        return next(chunk for chunk in self._layout[index.fqn].chunks if chunk.offsets == offsets)


def _first_failure(error: CheckpointException) -> Exception:
    """The failure of the lowest rank that failed, naming the rank where there are several."""
    rank, (cause, _) = min(error.failures.items())
    if isinstance(cause, KeyboardInterrupt | SystemExit) or not isinstance(cause, Exception):
        return LingossError(f"rank {rank} was stopped ({type(cause).__name__})")
    if isinstance(cause, OSError):  # keeps its number, by which a full disk is known
        return cause
    first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    alone = not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1
    return LingossError(first if alone else f"rank {rank}: {first}")


def read_whole(name: str, one: Sharded, read: Read) -> torch.Tensor:
    """The whole tensor put together from its chunks."""
    whole = torch.empty(one.shape, dtype=TYPES[one.dtype])
    for chunk in one.chunks:
        whole[chunk.slices] = read(name, chunk)
    return whole
