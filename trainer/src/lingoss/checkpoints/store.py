# SPDX-License-Identifier: MIT-0
"""The checkpoints of one run: `checkpoint-<step>` folders that are either whole or known to be bad."""

import contextlib
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lingoss.checkpoints.budget import Held, to_delete_first
from lingoss.checkpoints.layout import Layout
from lingoss.checkpoints.manifest import BadCheckpoint, FileRecord, verify, write_manifest
from lingoss.errors import LingossError
from lingoss.progress import note
from lingoss.runs.files import folder_size

_NAME = re.compile(r"checkpoint-(\d{1,15})")
_NEARLY_FULL = 1 << 20  # bytes free, below which a failed write is put down to the disk


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint that was written: where, in how many seconds of this process, and how large it is."""

    path: Path
    seconds: float
    bytes: int


class CheckpointStore:
    """Checkpoints below `folder`, of which the `keep` newest whole ones stay, and those of the `pinned` steps.

    With a `budget` in bytes, or on a disk that is nearly full, older ones go before the next is written, so that no
    moment needs more; the newest whole one never does. Only the holder of the run's lock may use it, and of several
    processes only rank 0, but for `save_sharded` and `load`, which all of them call.
    """

    def __init__(self, folder: Path, keep: int, budget: int | None = None) -> None:
        self.folder, self.keep, self.budget = folder, keep, budget
        self.pinned: frozenset[int] = frozenset()

    def path(self, step: int) -> Path:
        """Where the checkpoint of `step` is or will be."""
        return self.folder / f"checkpoint-{step}"

    def write(self, step: int, fill: Callable[[Path], None]) -> Path:
        """Make the checkpoint of `step`: `fill` writes its files into an empty folder that it is given.

        The folder is hashed, read back, verified and then renamed, so that a checkpoint is whole whenever it can be
        seen. A whole checkpoint of that step is left as it is.

        Raises:
            LingossError: it could not be written (the disk is full, say) or is not right; the newest whole one stays.
        """
        target = self.path(step)
        if target.is_dir() and self._reason(target) is None:
            return target
        try:
            fill(self._begin(step, self._newest_size()))
            self._publish(step)
        except Exception as error:
            raise self._failed(step, error) from error
        self.rotate()
        return target

    def save_sharded(self, step: int, model: Any, optimizer: Any, documents: Mapping[str, Any]) -> Saved:
        """Make the checkpoint of `step` from what every rank of the default process group holds; all of them call it.

        Saved are the trained weights and the optimizer's state, each rank its parts and what is replicated once, and
        rank 0's `documents`, {file name: JSON value}. Without a process group it works alone.

        Raises:
            LingossError: the same on every rank, as `write` raises it.
        """
        from lingoss.checkpoints.ranks import gathered, is_first
        from lingoss.checkpoints.sharded import save
        from lingoss.checkpoints.training import GROUPS, held

        start = time.monotonic()
        target = self.path(step)
        if any(gathered(is_first() and target.is_dir() and self._reason(target) is None)):
            return Saved(target, time.monotonic() - start, folder_size(target))
        tensors, groups = held(model, optimizer)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())

        def begin() -> None:
            self._begin(step, size)

        def publish(layout: Layout, files: Mapping[str, FileRecord]) -> None:
            for name, content in {**documents, GROUPS: groups}.items():
                text = json.dumps(content, indent=1, allow_nan=False) + "\n"
                (self._partial(step) / name).write_text(text, encoding="utf-8")
            self._publish(step, layout, files)

        try:
            save(tensors, self._partial(step), begin, publish)
        except (LingossError, OSError) as error:
            # Every rank is here, whichever failed; rank 0 clears up and has the words for all.
            words = gathered(str(self._failed(step, error)) if is_first() else "")
            raise LingossError(words[0]) from error
        if is_first():
            self.rotate()
        return Saved(target, time.monotonic() - start, folder_size(target))

    def load(self, path: Path, model: Any, optimizer: Any) -> dict[str, Any]:
        """Put the checkpoint in `path`, of either kind, into a model and its optimizer; returns its JSON documents.

        Every rank calls it, however many there are now, and reads only its own parts. The checkpoint must have been
        verified (`newest`); the parts that are read are compared with their digests again.

        Raises:
            LingossError: it holds other weights than the model trains, or a part is not what was saved.
        """
        from lingoss.checkpoints.sources import training_source
        from lingoss.checkpoints.training import GROUPS, restore

        source = training_source(path, optimizer, model)
        restore(model, optimizer, source.layout, source.documents[GROUPS], source.read)
        return dict(source.documents)

    def newest(self) -> tuple[Path | None, list[BadCheckpoint]]:
        """The newest checkpoint that passes every check, and the bad ones that are newer than it.

        What a killed process left half written is removed.
        """
        self._clear_aside()
        return newest_whole(self.folder)

    def resume(self, planned: int) -> tuple[Path | None, int]:
        """The checkpoint that a run of `planned` steps goes on from, and its step; None and 0 to begin. Tells of bad ones.

        Raises:
            LingossError: it is of a later step than the run has.
        """
        newest, bad = self.newest()
        for one in bad:
            note("bad checkpoint", {"checkpoint": one.path.name, "reason": one.reason})
        step = int(newest.name.rpartition("-")[2]) if newest else 0
        if step > planned:
            raise LingossError(f"{newest} is of step {step}, but {planned} are planned; remove {self.folder}")
        return newest, step

    def rotate(self) -> None:
        """Delete all but the `keep` newest whole checkpoints and the pinned ones; bad ones go too. With no whole one
        nothing is deleted."""
        whole = self._whole_steps()
        if not whole:
            return
        kept = {*whole[-self.keep :], *(self.pinned & set(whole))}
        for step, path in self._folders():
            if step not in kept and (step < whole[-1] or self._reason(path, thorough=False) is not None):
                shutil.rmtree(path, ignore_errors=True)
        self._clear_aside()

    def _begin(self, step: int, size: int) -> Path:
        """An empty folder aside, and room for `size` bytes in it."""
        self._clear_aside()
        found = [
            (path, Held(at, folder_size(path), self._reason(path, thorough=False) is None))
            for at, path in self._folders()
        ]
        free = shutil.disk_usage(next(p for p in (self.folder, *self.folder.absolute().parents) if p.exists())).free
        going = to_delete_first([one for _, one in found], self.pinned, size, self.budget, free)
        for path, one in found:
            if one.step in going:
                shutil.rmtree(path, ignore_errors=True)
        partial = self._partial(step)
        partial.mkdir(parents=True)
        return partial

    def _publish(self, step: int, layout: Layout | None = None, known: Mapping[str, FileRecord] | None = None) -> None:
        """Describe, verify and rename what lies aside. What its writers have verified is not read a third time."""
        partial, target = self._partial(step), self.path(step)
        for path in partial.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # safetensors writes files that only their owner reads
        write_manifest(partial, step, layout, known)
        verify(partial, thorough=layout is None)
        for folder in (partial, *(p for p in partial.rglob("*") if p.is_dir())):
            _sync(folder)
        if target.exists():  # a bad one
            target.rename(self.folder / f".old-{step}")
        partial.rename(target)
        _sync(self.folder)

    def _failed(self, step: int, error: Exception) -> LingossError:
        reason = self._reason_of_failure(error)
        shutil.rmtree(self._partial(step), ignore_errors=True)
        kept = self._whole_steps()
        rest = f"the checkpoint of step {kept[-1]} is whole" if kept else "there is no earlier one"
        return LingossError(
            f"checkpoint {step} could not be written to {self.folder}: {reason}; {rest}; "
            "start again when that is mended, and the run goes on from there"
        )

    def _partial(self, step: int) -> Path:
        return self.folder / f".partial-{step}"

    def _newest_size(self) -> int:
        """Bytes of the newest whole checkpoint, which the next one will have too; 0 when there is none."""
        whole = self._whole_steps()
        return folder_size(self.path(whole[-1])) if whole else 0

    def _folders(self) -> list[tuple[int, Path]]:
        """(step, path), oldest first."""
        return checkpoint_folders(self.folder)

    def _whole_steps(self) -> list[int]:
        return [step for step, path in self._folders() if self._reason(path, thorough=False) is None]

    @staticmethod
    def _reason(path: Path, thorough: bool = True) -> str | None:
        try:
            verify(path, thorough)
        except LingossError as error:
            return str(error)
        return None

    def _reason_of_failure(self, error: Exception) -> str:
        """torch and safetensors report a full disk as all kinds of errors, so the disk itself is asked too."""
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in first:
            return "the disk is full"
        with contextlib.suppress(OSError):
            existing = next(p for p in (self.folder, *self.folder.absolute().parents) if p.exists())
            if shutil.disk_usage(existing).free < _NEARLY_FULL:
                return "the disk is full"
        return first

    def _clear_aside(self) -> None:
        if not self.folder.is_dir():
            return
        for path in (*self.folder.glob(".partial-*"), *self.folder.glob(".old-*")):
            shutil.rmtree(path, ignore_errors=True)


def newest_whole(folder: Path) -> tuple[Path | None, list[BadCheckpoint]]:
    """The newest checkpoint in the `checkpoints/` of a run that passes every check, and the bad ones newer than it."""
    bad: list[BadCheckpoint] = []
    for _, path in reversed(checkpoint_folders(folder)):
        try:
            verify(path)
        except LingossError as error:
            bad.append(BadCheckpoint(path, str(error)))
        else:
            return path, bad
    return None, bad


def checkpoint_folders(folder: Path) -> list[tuple[int, Path]]:
    """(step, path) of every checkpoint, whole or not, in the `checkpoints/` of a run, oldest first."""
    if not folder.is_dir():
        return []
    found = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems cannot sync a folder; the files in it are synced
    finally:
        os.close(descriptor)
