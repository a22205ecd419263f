# SPDX-License-Identifier: MIT-0
"""The checkpoints of one run: `checkpoint-<step>` folders that are either whole or known to be bad."""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from lingoss.checkpoints.manifest import BadCheckpoint, verify, write_manifest
from lingoss.errors import LingossError
from lingoss.progress import note

_NAME = re.compile(r"checkpoint-(\d{1,15})")
_NEARLY_FULL = 1 << 20  # bytes free, below which a failed write is put down to the disk


class CheckpointStore:
    """Checkpoints below `folder`, of which the `keep` newest whole ones stay, and those of the `pinned` steps.

    Only the holder of the run's lock may use it.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep
        self.pinned: frozenset[int] = frozenset()

    def path(self, step: int) -> Path:
        """Where the checkpoint of `step` is or will be."""
        return self.folder / f"checkpoint-{step}"

    def write(self, step: int, fill: Callable[[Path], None]) -> Path:
        """Make the checkpoint of `step`: `fill` writes its files into an empty folder that it is given.

        The folder is hashed, read back, verified and then renamed, so that a checkpoint is whole whenever it can be
        seen. Older ones are deleted after that and never before. A whole checkpoint of that step is left as it is.

        Raises:
            LingossError: it could not be written (the disk is full, say) or is not right; the others are untouched.
        """
        target = self.path(step)
        if target.is_dir() and self._reason(target) is None:
            return target
        partial = self.folder / f".partial-{step}"
        try:
            self._clear_aside()
            partial.mkdir(parents=True)
            fill(partial)
            for path in partial.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)  # safetensors writes files that only their owner reads
            write_manifest(partial, step)
            verify(partial)
            for folder in (partial, *(p for p in partial.rglob("*") if p.is_dir())):
                _sync(folder)
            if target.exists():  # a bad one
                target.rename(self.folder / f".old-{step}")
            partial.rename(target)
            _sync(self.folder)
        except Exception as error:
            reason = self._reason_of_failure(error)
            shutil.rmtree(partial, ignore_errors=True)
            kept = self._whole_steps()
            rest = f"the checkpoint of step {kept[-1]} is whole" if kept else "there is no earlier one"
            raise LingossError(
                f"checkpoint {step} could not be written to {self.folder}: {reason}; {rest}; "
                "start again when that is mended, and the run goes on from there"
            ) from error
        self.rotate()
        return target

    def newest(self) -> tuple[Path | None, list[BadCheckpoint]]:
        """The newest checkpoint that passes every check, and the bad ones that are newer than it.

        What a killed process left half written is removed.
        """
        self._clear_aside()
        bad: list[BadCheckpoint] = []
        for _, path in reversed(self._folders()):
            reason = self._reason(path)
            if reason is None:
                return path, bad
            bad.append(BadCheckpoint(path, reason))
        return None, bad

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

    def _folders(self) -> list[tuple[int, Path]]:
        """(step, path), oldest first."""
        if not self.folder.is_dir():
            return []
        found = [(_NAME.fullmatch(path.name), path) for path in self.folder.iterdir() if path.is_dir()]
        return sorted((int(match[1]), path) for match, path in found if match)

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


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems cannot sync a folder; the files in it are synced
    finally:
        os.close(descriptor)
